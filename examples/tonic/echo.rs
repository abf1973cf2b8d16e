//! A small gRPC service written by hand. In a real one this is what `tonic-build` generates from a `.proto` file;
//! here messages are plain bytes, so that no compiler for protocol buffers is needed.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::body::Bytes;
use tokio::sync::mpsc;
use tonic::{
    Code, Request, Response, Status, Streaming,
    body::Body,
    client::{Grpc as ClientGrpc, GrpcService},
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::Grpc,
};
use tower::{Service, service_fn};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What an echo service does.
pub(crate) trait Echo: Send + Sync + 'static {
    /// Answers one message with one.
    fn say(&self, request: Request<Bytes>) -> impl Future<Output = Result<Bytes, Status>> + Send;

    /// Answers one message with many.
    fn repeat(&self, request: Request<Bytes>) -> mpsc::Receiver<Result<Bytes, Status>>;
}

/// Serves an [`Echo`].
#[derive(Debug)]
pub(crate) struct EchoServer<E>(Arc<E>);

impl<E> EchoServer<E> {
    /// Serves `echo`.
    pub(crate) fn new(echo: E) -> Self {
        Self(Arc::new(echo))
    }
}

impl<E> Clone for EchoServer<E> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<E: Echo> Service<http::Request<Body>> for EchoServer<E> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let echo = Arc::clone(&self.0);
        Box::pin(async move {
            let mut grpc = Grpc::new(BytesCodec);
            Ok(match request.uri().path() {
                "/echo.Echo/Say" => {
                    let say = service_fn(|request| {
                        let echo = Arc::clone(&echo);
                        async move { echo.say(request).await.map(Response::new) }
                    });
                    grpc.unary(say, request).await
                }
                "/echo.Echo/Repeat" => {
                    let repeat = service_fn(|request| {
                        std::future::ready(Ok(Response::new(Messages(echo.repeat(request)))))
                    });
                    grpc.server_streaming(repeat, request).await
                }
                _ => Status::new(Code::Unimplemented, "no such method").into_http(),
            })
        })
    }
}

/// Calls an echo service.
#[derive(Clone, Debug)]
pub(crate) struct EchoClient<T>(ClientGrpc<T>);

impl<T> EchoClient<T>
where
    T: GrpcService<Body>,
    T::Error: std::error::Error + Send + Sync + 'static,
    T::ResponseBody: http_body::Body<Data = Bytes, Error: Into<tonic::codegen::StdError>> + Send + 'static,
{
    /// Calls through `channel`.
    pub(crate) fn new(channel: T) -> Self {
        Self(ClientGrpc::new(channel))
    }

    /// One message for one.
    pub(crate) async fn say(&mut self, message: Bytes) -> Result<Bytes, Status> {
        self.ready().await?;
        let path = http::uri::PathAndQuery::from_static("/echo.Echo/Say");
        self.0.unary(Request::new(message), path, BytesCodec).await.map(Response::into_inner)
    }

    /// Many messages for one.
    pub(crate) async fn repeat(&mut self, message: Bytes) -> Result<Streaming<Bytes>, Status> {
        self.ready().await?;
        let path = http::uri::PathAndQuery::from_static("/echo.Echo/Repeat");
        self.0.server_streaming(Request::new(message), path, BytesCodec).await.map(Response::into_inner)
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))
    }
}

/// A channel's receiver as a stream.
struct Messages(mpsc::Receiver<Result<Bytes, Status>>);

impl tonic::codegen::tokio_stream::Stream for Messages {
    type Item = Result<Bytes, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

#[derive(Clone, Copy, Debug)]
struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put(buffer, item);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = bytes::Buf::remaining(buffer);
        Ok(Some(bytes::Buf::copy_to_bytes(buffer, length)))
    }
}
