use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use prost::Message;
use snapshot_prepare::pb::backup::PrepareSnapshotBackupRequest;
use snapshot_prepare::region::Store;
use tokio::sync::{mpsc, watch};

use crate::support::{listen, soon, store_at};

/// A server on the level of HTTP/2, which sends its headers when it is told to.
pub(crate) struct RawStore {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    calls: mpsc::UnboundedReceiver<Call>,
    /// Once true, connections are kept but nothing is read or written any more.
    pub(crate) frozen: watch::Sender<bool>,
    /// Once true, connections are cut.
    pub(crate) cut: watch::Sender<bool>,
}

/// One call that came in.
pub(crate) struct Call {
    pub(crate) path: String,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    answers: Option<SendStream<Bytes>>,
    read: BytesMut,
}

impl RawStore {
    pub(crate) async fn start() -> Self {
        Self::start_with(h2::server::Builder::new()).await
    }

    pub(crate) async fn start_with(builder: h2::server::Builder) -> Self {
        let (listener, address) = listen().await;
        let (sender, calls) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let frozen = watch::Sender::new(false);
        let cut = watch::Sender::new(false);
        let signals = (frozen.subscribe(), cut.subscribe());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (builder, sender) = (builder.clone(), sender.clone());
                let (mut frozen, mut cut) = signals.clone();
                tokio::spawn(async move {
                    let serving = async {
                        let mut connection = builder.handshake(socket).await.expect("HTTP/2");
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            let _ = sender.send(Call::new(request, respond));
                        }
                    };
                    let mut serving = std::pin::pin!(serving);
                    let keep = tokio::select! {
                        biased;
                        _ = cut.wait_for(|cut| *cut) => false,
                        _ = frozen.wait_for(|frozen| *frozen) => true,
                        () = &mut serving => false,
                    };
                    if keep {
                        std::future::pending::<()>().await;
                    }
                });
            }
        });
        Self {
            address,
            connections,
            calls,
            frozen,
            cut,
        }
    }

    pub(crate) fn store(&self) -> Store {
        store_at(self.address)
    }

    pub(crate) async fn call(&mut self) -> Call {
        soon(self.calls.recv()).await.expect("the server stands")
    }
}

impl Call {
    fn new(request: Request<RecvStream>, respond: SendResponse<Bytes>) -> Self {
        Self {
            path: request.uri().path().to_owned(),
            body: request.into_body(),
            respond,
            answers: None,
            read: BytesMut::new(),
        }
    }

    /// The next request, `None` when the client has closed its side.
    pub(crate) async fn request(&mut self) -> Option<PrepareSnapshotBackupRequest> {
        loop {
            if self.read.len() >= 5 {
                let length = (&self.read[1..5]).get_u32() as usize;
                if self.read.len() >= 5 + length {
                    self.read.advance(5);
                    let message = self.read.split_to(length);
                    let request = PrepareSnapshotBackupRequest::decode(message);
                    return Some(request.expect("it is protobuf"));
                }
            }
            let data = soon(self.body.data()).await?.ok()?;
            let flow = self.body.flow_control();
            flow.release_capacity(data.len()).expect("it was received");
            self.read.extend_from_slice(&data);
        }
    }

    /// Sends an answer in a frame of its own, with the headers before the first.
    pub(crate) fn answer(&mut self, answer: &impl Message) {
        let message = answer.encode_to_vec();
        let mut frame = vec![0];
        frame.extend(u32::try_from(message.len()).expect("short").to_be_bytes());
        frame.extend(message);
        self.headers().send_data(frame.into(), false).expect("open");
    }

    /// Ends the call; with headers alone when nothing was sent yet.
    pub(crate) fn end(mut self, code: u16, words: &'static str) {
        let mut status = HeaderMap::new();
        status.insert("grpc-status", HeaderValue::from(code));
        status.insert("grpc-message", HeaderValue::from_static(words));
        match &mut self.answers {
            Some(answers) => answers.send_trailers(status).expect("open"),
            None => {
                let mut response = response();
                response.headers_mut().extend(status);
                self.respond.send_response(response, true).expect("open");
            }
        }
    }

    /// Sends the headers now, if they were not sent before.
    pub(crate) fn headers(&mut self) -> &mut SendStream<Bytes> {
        let respond = &mut self.respond;
        self.answers
            .get_or_insert_with(|| respond.send_response(response(), false).expect("open"))
    }
}

fn response() -> Response<()> {
    let mut response = Response::new(());
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", grpc);
    response
}
