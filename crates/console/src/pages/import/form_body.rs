//! The body of a form with a file, so that reading it takes bounded memory.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::{Body, BodyDataStream, Bytes};
use futures_util::Stream;
use http::Request;

/// The maximum bytes that arrive before one of them is used: those of the headers of a field.
const MAX_UNUSED_BYTES: usize = 64 << 10;

/// The bytes of a form that have arrived since a part of it was used.
#[derive(Clone, Default)]
pub struct Unused(Arc<AtomicUsize>);

impl Unused {
    /// A part of the form was used.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Bounds the body of a request by these bytes.
    pub fn bound(&self, request: Request<Body>) -> Request<Body> {
        request.map(|body| {
            let unused = self.clone();
            Body::from_stream(FormBody { body: body.into_data_stream(), unused, has_given: false })
        })
    }
}

/// A body for a parser that keeps all that it is given until it finds the end of a header.
struct FormBody {
    body: BodyDataStream,
    unused: Unused,
    /// Whether the parser has a chunk that it may not have looked at.
    has_given: bool,
}

impl Stream for FormBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // One chunk at a time: the parser reads until it has to wait, before it looks at them.
        if std::mem::take(&mut self.has_given) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let chunk = ready!(Pin::new(&mut self.body).poll_next(context));
        if let Some(Ok(bytes)) = &chunk {
            self.has_given = true;
            if self.unused.0.fetch_add(bytes.len(), Ordering::Relaxed) > MAX_UNUSED_BYTES {
                let error = axum::Error::new("the headers of a field are too long");
                return Poll::Ready(Some(Err(error)));
            }
        }
        Poll::Ready(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::{FromRequest, Multipart};
    use futures_util::{StreamExt, stream};

    #[tokio::test]
    async fn headers_are_bounded_and_files_are_not() {
        let begin = "--b\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\n";
        let chunk = "x".repeat(16 << 10);
        for (begin, fits) in [(begin, true), ("--b\r\nx: ", false), ("", false)] {
            let end = "\r\n--b--\r\n".to_owned();
            let chunks = std::iter::repeat_n(chunk.clone(), 100).chain([end]);
            let chunks = std::iter::once(begin.to_owned()).chain(chunks);
            let taken = Arc::new(AtomicUsize::new(0));
            let counter = taken.clone();
            let counted = stream::iter(chunks).inspect(move |_| {
                counter.fetch_add(1, Ordering::Relaxed);
            });
            let body = Body::from_stream(counted.map(Ok::<_, std::io::Error>));
            let request =
                Request::post("/").header("content-type", "multipart/form-data; boundary=b");
            let unused = Unused::default();
            let request = unused.bound(request.body(body).unwrap());
            let mut form = Multipart::from_request(request, &()).await.unwrap();
            let mut bytes = 0;
            let read = async {
                let mut field = form.next_field().await?.unwrap();
                while let Some(chunk) = field.chunk().await? {
                    bytes += chunk.len();
                    unused.reset();
                }
                Ok::<_, axum::extract::multipart::MultipartError>(())
            };
            assert_eq!(read.await.is_ok(), fits, "{begin:?}");
            assert_eq!(bytes, if fits { 1_600 << 10 } else { 0 });
            assert!(fits || taken.load(Ordering::Relaxed) < 10, "{begin:?}: {taken:?}");
        }
    }
}
