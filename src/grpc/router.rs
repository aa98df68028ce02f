//! Which service answers which call.

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tonic_reflection::server::Builder as Reflection;
use tower::util::BoxCloneSyncService;

use super::admin_service::AdminApi;
use super::directory_service::DirectoryApi;
use super::registry_service::RegistryApi;
use crate::directory::Directory;
use crate::proto::DESCRIPTORS;
use crate::proto::services::admin_service_server::AdminServiceServer;
use crate::proto::services::directory_service_server::DirectoryServiceServer;
use crate::proto::services::registry_service_server::RegistryServiceServer;

/// The largest request of DirectoryService: room for a full batch.
const DIRECTORY_BYTES: usize = 1 << 20;
/// The largest request of RegistryService and AdminService: room for a full user.
const REGISTRY_BYTES: usize = 64 << 10;
/// The largest request of the services that take next to nothing.
const SMALL_BYTES: usize = 4 << 10;

type Directories = DirectoryServiceServer<DirectoryApi>;
type Registries = RegistryServiceServer<RegistryApi>;
type Admins = AdminServiceServer<AdminApi>;
type Healths = HealthServer<HealthService>;
type Boxed = BoxCloneSyncService<Request<Incoming>, Response<Body>, Infallible>;

/// The names of the services whose health is told; the empty one stands for the server as a whole.
pub const SERVICES: [&str; 4] = ["", Directories::NAME, Registries::NAME, Admins::NAME];

pub struct Router {
    directory: Directories,
    registry: Registries,
    admin: Admins,
    health: Healths,
    reflection: Boxed,
    reflection_alpha: Boxed,
}

impl Router {
    pub fn new(directory: &Arc<Directory>, health: &HealthReporter) -> Result<Self, tonic_reflection::server::Error> {
        let health = HealthService::from_health_reporter(health.clone());
        let directories = Directories::new(DirectoryApi(directory.clone()));
        let registries = Registries::new(RegistryApi(directory.clone()));
        let admins = Admins::new(AdminApi(directory.clone()));
        let alpha = reflection().build_v1alpha()?.max_decoding_message_size(SMALL_BYTES);
        Ok(Self {
            directory: directories.max_decoding_message_size(DIRECTORY_BYTES),
            registry: registries.max_decoding_message_size(REGISTRY_BYTES),
            admin: admins.max_decoding_message_size(REGISTRY_BYTES),
            health: HealthServer::new(health).max_decoding_message_size(SMALL_BYTES),
            reflection: Boxed::new(reflection().build_v1()?.max_decoding_message_size(SMALL_BYTES)),
            reflection_alpha: Boxed::new(alpha),
        })
    }

    pub async fn call(&self, request: Request<Incoming>) -> Response<Body> {
        let service = request.uri().path().split('/').nth(1).unwrap_or_default();
        let Ok(response) = match service {
            Directories::NAME => self.directory.clone().call(request).await,
            Registries::NAME => self.registry.clone().call(request).await,
            Admins::NAME => self.admin.clone().call(request).await,
            Healths::NAME => self.health.clone().call(request).await,
            "grpc.reflection.v1.ServerReflection" => self.reflection.clone().call(request).await,
            "grpc.reflection.v1alpha.ServerReflection" => self.reflection_alpha.clone().call(request).await,
            _ => Ok(Status::unimplemented("there is no such service: reflection lists those that are").into_http()),
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
