//! Generates the services from `proto/`: for each method a function that calls it by the client's
//! rules, and for each request the fields that the client sets. A new method needs no code here.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write;

use prost_build::{Config, Method, Service, ServiceGenerator};
use prost_types::method_options::IdempotencyLevel;

const SERVICES: [&str; 4] = [
    "polynym/v1/admin_service.proto",
    "polynym/v1/directory_service.proto",
    "polynym/v1/inbox_service.proto",
    "polynym/v1/registry_service.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=../../proto");
    let files = protox::compile(SERVICES, ["../../proto"])?;
    let messages = files.file.iter().flat_map(|file| {
        file.message_type.iter().map(|message| {
            let fields = message.field.iter().map(|field| field.name().to_owned()).collect();
            (format!(".{}.{}", file.package(), message.name()), fields)
        })
    });
    let generator = Services { fields: messages.collect() };
    Config::new()
        .service_generator(Box::new(generator))
        .extern_path(".polynym.v1", "::polynym_proto::v1")
        .extern_path(".google.rpc", "::polynym_proto::google::rpc")
        .compile_fds(files)?;
    Ok(())
}

/// Writes the services.
struct Services {
    /// The names of the fields of each message.
    fields: BTreeMap<String, BTreeSet<String>>,
}

impl ServiceGenerator for Services {
    fn generate(&mut self, service: Service, out: &mut String) {
        self.write(&service, out).unwrap_or_else(|error| panic!("{}: {error}", service.name));
    }
}

impl Services {
    fn write(&self, service: &Service, out: &mut String) -> std::fmt::Result {
        let name = service.name.trim_end_matches("Service");
        write_comments(&service.comments.leading, "", out)?;
        writeln!(out, "#[derive(Clone, Debug)]")?;
        writeln!(out, "pub struct {name}(pub(crate) crate::Client);")?;
        writeln!(out, "impl {name} {{")?;
        for method in &service.methods {
            write_comments(&method.comments.leading, "    ", out)?;
            self.write_method(service, method, out)?;
        }
        writeln!(out, "}}")?;
        for method in &service.methods {
            self.write_request(method, out)?;
        }
        Ok(())
    }

    fn write_method(
        &self,
        service: &Service,
        method: &Method,
        out: &mut String,
    ) -> std::fmt::Result {
        let path = format!("/{}.{}/{}", service.package, service.proto_name, method.proto_name);
        let only_reads = method.options.idempotency_level() == IdempotencyLevel::NoSideEffects;
        let (input, output) = (&method.input_type, &method.output_type);
        let (call, answer) = match (method.client_streaming, method.server_streaming) {
            (false, false) => ("unary", output.clone()),
            (false, true) => ("stream", format!("crate::Answers<{output}>")),
            (true, _) => ("exchange", format!("crate::Answers<{output}>")),
        };
        let (request, convert) = match method.client_streaming {
            false => (format!("tonic::IntoRequest<{input}>"), "into_request"),
            true => (
                format!("tonic::IntoStreamingRequest<Message = {input}>"),
                "into_streaming_request",
            ),
        };
        write!(
            out,
            "    pub async fn {}(
        &self,
        request: impl {request},
    ) -> Result<{answer}, crate::Error> {{
        const METHOD: crate::call::Method = crate::call::Method {{
            path: {path:?},
            only_reads: {only_reads},
            has_request_id: {},
        }};
        self.0.{call}(&METHOD, request.{convert}()).await
    }}
",
            method.name,
            self.has(method, "request_id"),
        )
    }

    fn write_request(&self, method: &Method, out: &mut String) -> std::fmt::Result {
        writeln!(out, "impl crate::call::ApiRequest for {} {{", method.input_type)?;
        for field in ["tenant", "request_id"] {
            if self.has(method, field) {
                writeln!(out, "    fn {field}(&mut self) -> Option<&mut String> {{")?;
                writeln!(out, "        Some(&mut self.{field})\n    }}")?;
            }
        }
        writeln!(out, "}}")
    }

    fn has(&self, method: &Method, field: &str) -> bool {
        self.fields.get(&method.input_proto_type).is_some_and(|fields| fields.contains(field))
    }
}

fn write_comments(lines: &[String], indent: &str, out: &mut String) -> std::fmt::Result {
    for line in lines {
        writeln!(out, "{indent}///{line}")?;
    }
    Ok(())
}
