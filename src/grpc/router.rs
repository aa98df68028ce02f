//! Which service answers which call.

use std::convert::Infallible;
use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::HealthReporter;
use tonic_reflection::server::Builder as Reflection;
use tower::util::BoxCloneSyncService;

use super::admin_service::AdminApi;
use super::authorization;
use super::directory_service::{DirectoryApi, check_batch};
use super::health::HealthApi;
use super::inbox_service::InboxApi;
use super::methods::{SMALL_BYTES, STREAM_BYTES, Service, Target};
use super::registry_service::RegistryApi;
use crate::access::{Access, Call, Caller};
use crate::directory::service::Directory;
use crate::proto::DESCRIPTORS;
use crate::proto::services::admin_service_server::AdminServiceServer;
use crate::proto::services::directory_service_server::DirectoryServiceServer;
use crate::proto::services::inbox_service_server::InboxServiceServer;
use crate::proto::services::registry_service_server::RegistryServiceServer;
use crate::transport::protocol;
use crate::transport::request_body::{PREFIX, RequestBody};
use crate::transport::routes::{Refusal, Routes};

pub type Directories = DirectoryServiceServer<DirectoryApi>;
pub type Registries = RegistryServiceServer<RegistryApi>;
pub type Inboxes = InboxServiceServer<InboxApi>;
pub type Admins = AdminServiceServer<AdminApi>;
pub type Healths = HealthServer<HealthApi>;
type Boxed = BoxCloneSyncService<Request<RequestBody>, Response<Body>, Infallible>;

pub struct Router {
    /// The items that a batch may have.
    batch: usize,
    access: Arc<Access>,
    directory: Directories,
    registry: Registries,
    inbox: Inboxes,
    admin: Admins,
    health: Healths,
    reflection: Boxed,
    reflection_alpha: Boxed,
}

impl Router {
    pub fn new(
        directory: &Arc<Directory>,
        access: Arc<Access>,
        health: &HealthReporter,
        stopping: watch::Receiver<bool>,
    ) -> Result<Self, tonic_reflection::server::Error> {
        let alpha = reflection().build_v1alpha()?.max_decoding_message_size(SMALL_BYTES);
        Ok(Self {
            batch: directory.limits().batch,
            access,
            directory: Directories::new(DirectoryApi::new(directory.clone(), stopping)),
            registry: Registries::new(RegistryApi(directory.clone())),
            inbox: Inboxes::new(InboxApi(directory.clone())),
            admin: Admins::new(AdminApi(directory.clone())).max_decoding_message_size(STREAM_BYTES),
            health: Healths::new(HealthApi::new(health)).max_decoding_message_size(SMALL_BYTES),
            reflection: Boxed::new(reflection().build_v1()?.max_decoding_message_size(SMALL_BYTES)),
            reflection_alpha: Boxed::new(alpha),
        })
    }
}

impl Routes for Router {
    type Target = Target;

    fn needs_credentials(&self) -> bool {
        self.access.is_closed()
    }

    fn certified(&self, names: &[String]) -> Option<Arc<Caller>> {
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
        if let (Service::Directory, RequestBody::Whole(bytes)) = (service, request.body())
            && let Err(refusal) = check_batch(
                request.uri().path(),
                bytes.get(PREFIX..).unwrap_or_default(),
                self.batch,
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
