"""An S3 server for the tests: moto's, answering one request at a time, since its
check of a condition and its write are two steps. Prints its port, and ends when
its standard input does.

Buckets: `locks` and `versioned`, which keeps all versions, are there; what is
asked of `denied`, `busy` and `down` is refused with the status 403, 429 and 503.
"""

import sys
import threading
import urllib.request

from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

REFUSALS = {
    "denied": "403 Forbidden",
    "busy": "429 Too Many Requests",
    "down": "503 Service Unavailable",
}

# Without the dispatcher, which looks up at each request whose it is: half the time
# of a request.
application = create_backend_app("s3")
turn = threading.Lock()


def one_at_a_time(environ, start_response):
    bucket = environ["PATH_INFO"].split("/")[1]
    if bucket in REFUSALS:
        start_response(REFUSALS[bucket], [("Content-Length", "0")])
        return [b""]
    with turn:
        return list(application(environ, start_response))


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass


server = make_server(
    "127.0.0.1", 0, one_at_a_time, threaded=True, request_handler=Quiet
)
threading.Thread(target=server.serve_forever, daemon=True).start()


def put(path, body=None):
    url = f"http://127.0.0.1:{server.port}/{path}"
    request = urllib.request.Request(url, data=body, method="PUT")
    request.add_header("Content-Type", "application/xml")
    urllib.request.urlopen(request).close()


put("locks")
put("versioned")
put(
    "versioned?versioning",
    b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
)
print(server.port, flush=True)
sys.stdin.read()
