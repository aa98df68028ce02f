//! Routes calls to services.

use std::convert::Infallible;
use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::CompressionEncoding::Gzip;
use tonic::codegen::Service as _;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::HealthReporter;
use tonic_reflection::server::Builder as Reflection;
use tower::util::BoxCloneSyncService;

use super::api::Api;
use super::authorization;
use super::batches::check_batch;
use super::health::HealthApi;
use super::methods::{MAX_SMALL_BYTES, MAX_STREAM_BYTES, Service, Target};
use super::stubs::admin_service_server::AdminServiceServer;
use super::stubs::directory_service_server::DirectoryServiceServer;
use super::stubs::inbox_service_server::InboxServiceServer;
use super::stubs::registry_service_server::RegistryServiceServer;
use polynym_access::{Access, Call, Caller};
use polynym_directory::service::Directory;
use polynym_proto::DESCRIPTORS;
use polynym_transport::protocol;
use polynym_transport::request_body::{PREFIX, RequestBody};
use polynym_transport::routes::{Refusal, Routes};

type BoxedService = BoxCloneSyncService<Request<RequestBody>, Response<Body>, Infallible>;

pub struct Router {
    /// The maximum number of items of a batch.
    max_batch_items: usize,
    access: Arc<Access>,
    directory: DirectoryServiceServer<Api>,
    registry: RegistryServiceServer<Api>,
    inbox: InboxServiceServer<Api>,
    admin: AdminServiceServer<Api>,
    health: HealthServer<HealthApi>,
    reflection: BoxedService,
    reflection_alpha: BoxedService,
}

impl Router {
    pub fn new(
        directory: &Arc<Directory>,
        access: Arc<Access>,
        health: &HealthReporter,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self, tonic_reflection::server::Error> {
        let v1 = reflection().build_v1()?.max_decoding_message_size(MAX_SMALL_BYTES);
        let v1alpha = reflection().build_v1alpha()?.max_decoding_message_size(MAX_SMALL_BYTES);
        let api = Arc::new(Api::new(directory.clone(), stopping));
        Ok(Self {
            max_batch_items: directory.limits().batch,
            access,
            // The transport decompresses the messages of other calls than streams.
            directory: DirectoryServiceServer::from_arc(api.clone())
                .accept_compressed(Gzip)
                .max_decoding_message_size(MAX_STREAM_BYTES),
            registry: RegistryServiceServer::from_arc(api.clone()),
            inbox: InboxServiceServer::from_arc(api.clone()),
            admin: AdminServiceServer::from_arc(api)
                .accept_compressed(Gzip)
                .max_decoding_message_size(MAX_STREAM_BYTES),
            health: HealthServer::new(HealthApi::new(health))
                .max_decoding_message_size(MAX_SMALL_BYTES),
            reflection: BoxedService::new(v1),
            reflection_alpha: BoxedService::new(v1alpha),
        })
    }
}

impl Routes for Router {
    type Target = Target;

    fn needs_credentials(&self) -> bool {
        self.access.requires_credentials()
    }

    fn certified_caller(&self, names: &[String]) -> Option<Arc<Caller>> {
        self.access.caller(&HeaderMap::new(), names)
    }

    fn authorize<B>(
        &self,
        request: &mut Request<B>,
        names: &[String],
    ) -> Result<Option<Arc<Call>>, Refusal> {
        authorization::authorize(&self.access, request, names)
    }

    async fn call(&self, target: Target, request: Request<RequestBody>) -> Response<Body> {
        let service = target.method().service;
        if let (Service::Directory, RequestBody::Complete(bytes)) = (service, request.body())
            && let Err(refusal) = check_batch(
                request.uri().path(),
                bytes.get(PREFIX..).unwrap_or_default(),
                self.max_batch_items,
            )
        {
            return refusal.into_http();
        }
        let Ok(response) = match service {
            Service::Directory => self.directory.clone().call(request).await,
            Service::Registry => self.registry.clone().call(request).await,
            Service::Inbox => self.inbox.clone().call(request).await,
            Service::Admin => self.admin.clone().call(request).await,
            Service::Health => self.health.clone().call(request).await,
            Service::Reflection => self.reflection.clone().call(request).await,
            Service::ReflectionAlpha => self.reflection_alpha.clone().call(request).await,
            Service::Unknown if Target::is_of_known_service(request.uri().path()) => {
                Ok(protocol::unknown_method().into_http())
            }
            Service::Unknown => Ok(protocol::unknown_service().into_http()),
        };

        response
    }
}

fn reflection() -> Reflection<'static> {
    Reflection::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .include_reflection_service(false)
}
