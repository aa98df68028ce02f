//! Generates the services from `proto/`: for each method a function that calls it by the client's
//! rules, for each list that has pages one for all of its items, and for each request the fields
//! that the client sets. A new method needs no code here.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

use prost_build::{Config, Method, Service, ServiceGenerator};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::method_options::IdempotencyLevel;
use prost_types::{DescriptorProto, FieldDescriptorProto};

const SERVICES: [&str; 4] = [
    "polynym/v1/admin_service.proto",
    "polynym/v1/directory_service.proto",
    "polynym/v1/inbox_service.proto",
    "polynym/v1/registry_service.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(SERVICES, ["proto"])?;
    let messages = files.file.iter().flat_map(|file| {
        let named = |message: &DescriptorProto| {
            (format!(".{}.{}", file.package(), message.name()), message.field.clone())
        };
        file.message_type.iter().map(named)
    });
    let messages: BTreeMap<_, _> = messages.collect();
    let generator = Services { messages };
    Config::new()
        .service_generator(Box::new(generator))
        .extern_path(".polynym.v1", "::polynym_proto::v1")
        .extern_path(".google.rpc", "::polynym_proto::google::rpc")
        .compile_fds(files)?;
    Ok(())
}

/// Writes the services.
struct Services {
    /// The fields of each message.
    messages: BTreeMap<String, Vec<FieldDescriptorProto>>,
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
            self.write_items(method, out)?;
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
        const METHOD: crate::method::Method = crate::method::Method {{
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

    /// Writes the function for the items of all pages, if the method has pages.
    fn write_items(&self, method: &Method, out: &mut String) -> std::fmt::Result {
        let answer = &self.messages[&method.output_proto_type];
        let Some(items) = answer.iter().find(|field| field.label() == Label::Repeated) else {
            return Ok(());
        };
        if !self.has(method, "page_token") || method.server_streaming {
            return Ok(());
        }
        let item = match items.r#type() {
            Type::Message => items.type_name().replace(".polynym.v1.", "::polynym_proto::v1::"),
            _ => "String".to_owned(),
        };
        let (name, input, items) = (&method.name, &method.input_type, items.name());
        write!(
            out,
            "    /// The items of all pages of [`{name}`](Self::{name}).
    pub fn {name}_all(&self, request: {input}) -> crate::Items<{item}> {{
        let service = self.clone();
        crate::pages::items(request.page_token.clone(), move |page_token| {{
            let (service, request) = (service.clone(), request.clone());
            async move {{
                let page = service.{name}({input} {{ page_token, ..request }}).await?;
                Ok((page.{items}, page.next_page_token))
            }}
        }})
    }}
"
        )
    }

    fn write_request(&self, method: &Method, out: &mut String) -> std::fmt::Result {
        writeln!(out, "impl crate::method::ApiRequest for {} {{", method.input_type)?;
        for field in ["tenant", "request_id"] {
            if self.has(method, field) {
                writeln!(out, "    fn {field}(&mut self) -> Option<&mut String> {{")?;
                writeln!(out, "        Some(&mut self.{field})\n    }}")?;
            }
        }
        writeln!(out, "}}")
    }

    fn has(&self, method: &Method, field: &str) -> bool {
        let fields = self.messages.get(&method.input_proto_type);
        fields.is_some_and(|fields| fields.iter().any(|other| other.name() == field))
    }
}

fn write_comments(lines: &[String], indent: &str, out: &mut String) -> std::fmt::Result {
    for line in lines {
        writeln!(out, "{indent}///{line}")?;
    }
    Ok(())
}
