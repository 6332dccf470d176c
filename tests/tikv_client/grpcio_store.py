"""A store that is served by grpcio, whose gRPC core is the one of TiKV.

Usage: grpcio_store.py [CA CERT KEY]. Prints its port; ends with standard input.
With files it demands a client certificate that CA has signed.

Messages are bytes here: what is needed of them is taken apart by hand.
"""

import sys
from concurrent import futures

import grpc

CLAIMS = 2000


def varint(number):
    encoded = b""
    while number > 0x7F:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def field(number, content):
    """A field that holds bytes, or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def split(message):
    """The fields of a message: (number, value), bytes or number."""

    def read(at):
        number = shift = 0
        while True:
            number |= (message[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if message[at - 1] < 0x80:
                return number, at

    at = 0
    while at < len(message):
        tag, at = read(at)
        value, at = read(at)
        if tag & 7 == 2:
            value, at = message[at : at + value], at + value
        yield tag >> 3, value


class Store(grpc.GenericRpcHandler):
    def __init__(self):
        self.leased = False

    def service(self, call):
        return {
            "/backup.Backup/PrepareSnapshotBackup": grpc.stream_stream_rpc_method_handler(
                self.prepare
            ),
            "/backup.Backup/CheckPendingAdminOp": grpc.unary_stream_rpc_method_handler(
                self.list_claims
            ),
            "/tikvpb.Tikv/KvBatchGet": grpc.unary_unary_rpc_method_handler(self.read),
        }.get(call.method)

    def prepare(self, requests, context):
        for request in requests:
            fields = list(split(request))
            kind = dict(fields).get(1, 0)
            if kind != 1:
                yield b"\x08\x01" + (b"\x20\x01" if self.leased else b"")
                self.leased = kind == 0
            if kind == 2:
                return
            for _, region in (each for each in fields if each[0] == 2):
                region_id = dict(split(region))[1]
                if region_id == 9:
                    context.abort(
                        grpc.StatusCode.FAILED_PRECONDITION, "the lease has expired"
                    )
                if region_id == 1:
                    context.abort(
                        grpc.StatusCode.CANCELLED, "the loop has been aborted by server"
                    )
                yield field(2, region)
        context.abort(grpc.StatusCode.CANCELLED, "CANCELLED")

    def list_claims(self, request, context):
        for number in range(1, CLAIMS + 1):
            start = b"%020d" % number
            epoch = b"\x08\x01\x10\x02"
            region = b"\x08" + varint(number) + field(2, start)
            region += field(3, start + b"~") + field(4, epoch)
            yield field(2, region)

    def read(self, request, context):
        region_id = dict(split(dict(split(request))[1]))[1]
        if region_id == 7:
            # A region error: not leader, of which the message says nothing.
            return field(1, field(2, b""))
        return b""


def main():
    server = grpc.server(futures.ThreadPoolExecutor(16))
    server.add_generic_rpc_handlers([Store()])
    if len(sys.argv) == 1:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        ca, certificate, key = (open(path, "rb").read() for path in sys.argv[1:])
        credentials = grpc.ssl_server_credentials(
            [(key, certificate)], root_certificates=ca, require_client_auth=True
        )
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(None)


main()
