//! The comments of `proto/` as descriptions in Markdown.

use std::collections::HashMap;

use prost_reflect::prost_types::FileDescriptorProto;
use prost_reflect::{
    DescriptorPool, EnumDescriptor, EnumValueDescriptor, FieldDescriptor, MessageDescriptor,
    MethodDescriptor, ServiceDescriptor,
};

/// The comments of all files, by file and path in it.
pub struct Comments(HashMap<(String, Vec<i32>), String>);

impl Comments {
    pub fn new(pool: &DescriptorPool) -> Self {
        Self(pool.file_descriptor_protos().flat_map(comments).collect())
    }

    pub fn of_service(&self, service: &ServiceDescriptor) -> &str {
        self.find(service.parent_file().name(), service.path())
    }

    pub fn of_method(&self, method: &MethodDescriptor) -> &str {
        self.find(method.parent_file().name(), method.path())
    }

    pub fn of_message(&self, message: &MessageDescriptor) -> &str {
        self.find(message.parent_file().name(), message.path())
    }

    pub fn of_field(&self, field: &FieldDescriptor) -> &str {
        self.find(field.parent_file().name(), field.path())
    }

    pub fn of_enum(&self, choices: &EnumDescriptor) -> &str {
        self.find(choices.parent_file().name(), choices.path())
    }

    pub fn of_value(&self, value: &EnumValueDescriptor) -> &str {
        self.find(value.parent_enum().parent_file().name(), value.path())
    }

    fn find(&self, file: &str, path: &[i32]) -> &str {
        self.0.get(&(file.to_owned(), path.to_owned())).map_or("", String::as_str)
    }
}

fn comments(file: &FileDescriptorProto) -> impl Iterator<Item = ((String, Vec<i32>), String)> + '_ {
    let locations = file.source_code_info.iter().flat_map(|info| &info.location);
    locations.filter_map(|location| {
        let text = text(location.leading_comments.as_deref()?);
        Some(((file.name().to_owned(), location.path.clone()), text))
    })
}

/// Joins the lines of each paragraph.
fn text(comment: &str) -> String {
    let paragraphs = comment.split("\n\n").map(|paragraph| {
        paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>()
    });
    paragraphs.map(|lines| lines.join(" ")).collect::<Vec<_>>().join("\n\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_paragraph_are_joined() {
        assert_eq!(text(" One\n two.\n\n Three.\n"), "One two.\n\nThree.");
    }
}
