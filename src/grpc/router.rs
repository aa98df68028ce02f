//! Which service answers which call.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::HealthReporter;
use tonic_reflection::server::Builder as Reflection;
use tower::util::BoxCloneSyncService;

use super::admin_service::AdminApi;
use super::authorization;
use super::directory_service::{DirectoryApi, check_batch};
use super::health::HealthApi;
use super::registry_service::RegistryApi;
use crate::access::Access;
use crate::directory::service::Directory;
use crate::proto::DESCRIPTORS;
use crate::proto::services::admin_service_server::AdminServiceServer;
use crate::proto::services::directory_service_server::DirectoryServiceServer;
use crate::proto::services::registry_service_server::RegistryServiceServer;
use crate::transport::request_body::{PREFIX, RequestBody};
use crate::transport::routes::{Permits, Routes};
use crate::transport::{protocol, routes};

/// The largest request of DirectoryService: room for a full batch.
const DIRECTORY_BYTES: usize = 1 << 20;
/// The largest request of RegistryService and AdminService: room for a full user.
const REGISTRY_BYTES: usize = 64 << 10;
/// The largest request of the services that take next to nothing.
const SMALL_BYTES: usize = 4 << 10;

type Directories = DirectoryServiceServer<DirectoryApi>;
type Registries = RegistryServiceServer<RegistryApi>;
type Admins = AdminServiceServer<AdminApi>;
type Healths = HealthServer<HealthApi>;
type Boxed = BoxCloneSyncService<Request<RequestBody>, Response<Body>, Infallible>;

/// The target of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Directory,
    Registry,
    Admin,
    /// Moves a tenant to new rules and reports progress.
    Renormalize,
    Health,
    /// Health as it changes.
    Watch,
    Reflection,
    ReflectionAlpha,
    Unknown,
}

impl routes::Target for Target {
    fn of(path: &str) -> Self {
        let mut parts = path.split('/').skip(1);
        match parts.next().unwrap_or_default() {
            Directories::NAME => Self::Directory,
            Registries::NAME => Self::Registry,
            Admins::NAME if parts.next() == Some("Renormalize") => Self::Renormalize,
            Admins::NAME => Self::Admin,
            Healths::NAME if parts.next() == Some("Watch") => Self::Watch,
            Healths::NAME => Self::Health,
            "grpc.reflection.v1.ServerReflection" => Self::Reflection,
            "grpc.reflection.v1alpha.ServerReflection" => Self::ReflectionAlpha,
            _ => Self::Unknown,
        }
    }

    fn is_stream(self) -> bool {
        matches!(self, Self::Renormalize | Self::Watch | Self::Reflection | Self::ReflectionAlpha)
    }

    fn message_bytes(self) -> usize {
        match self {
            Self::Directory => DIRECTORY_BYTES,
            Self::Registry | Self::Admin | Self::Renormalize => REGISTRY_BYTES,
            _ => SMALL_BYTES,
        }
    }

    fn permits(self) -> Option<Permits> {
        match self {
            Self::Directory => Some(Permits::Reads),
            Self::Registry | Self::Admin => Some(Permits::Mutations),
            _ => None,
        }
    }
}

pub struct Router {
    /// The items that a batch may have.
    batch: usize,
    access: Arc<Access>,
    directory: Directories,
    registry: Registries,
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
    ) -> Result<Self, tonic_reflection::server::Error> {
        let alpha = reflection().build_v1alpha()?.max_decoding_message_size(SMALL_BYTES);
        Ok(Self {
            batch: directory.limits().batch,
            access,
            directory: Directories::new(DirectoryApi::new(directory.clone())),
            registry: Registries::new(RegistryApi(directory.clone())),
            admin: Admins::new(AdminApi(directory.clone()))
                .max_decoding_message_size(REGISTRY_BYTES),
            health: Healths::new(HealthApi::new(health)).max_decoding_message_size(SMALL_BYTES),
            reflection: Boxed::new(reflection().build_v1()?.max_decoding_message_size(SMALL_BYTES)),
            reflection_alpha: Boxed::new(alpha),
        })
    }
}

impl Routes for Router {
    type Target = Target;

    fn authorize<B>(&self, request: &mut Request<B>) -> Result<(), Status> {
        authorization::authorize(&self.access, request)
    }

    async fn call(&self, target: Target, request: Request<RequestBody>) -> Response<Body> {
        if let (Target::Directory, RequestBody::Whole(bytes)) = (target, request.body())
            && let Err(refusal) = check_batch(
                request.uri().path(),
                bytes.get(PREFIX..).unwrap_or_default(),
                self.batch,
            )
        {
            return refusal.into_http();
        }
        let Ok(response) = match target {
            Target::Directory => self.directory.clone().call(request).await,
            Target::Registry => self.registry.clone().call(request).await,
            Target::Admin | Target::Renormalize => self.admin.clone().call(request).await,
            Target::Health | Target::Watch => self.health.clone().call(request).await,
            Target::Reflection => self.reflection.clone().call(request).await,
            Target::ReflectionAlpha => self.reflection_alpha.clone().call(request).await,
            Target::Unknown => Ok(protocol::unknown_service().into_http()),
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
