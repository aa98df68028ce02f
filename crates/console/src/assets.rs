//! Scripts and styles. They are part of the program, under names that change with their content.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

use axum::body::Body;
use axum::response::IntoResponse;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};

use crate::failure::Failure;
use crate::form::Path;

/// A file of the console.
struct Asset {
    name: &'static str,
    content_type: &'static str,
    content: &'static str,
}

const CSS: &str = include_str!("../assets/console.css");
/// The mark: many names that lead to one user.
const ICON: &str = include_str!("../assets/icon.svg");
/// One file: htmx begins to work when its file has run, so its extensions must be there by then.
/// The files of htmx (0BSD) are of its release 4.0.1; `tests` checks their hashes.
const SCRIPT: &str = concat!(
    include_str!("../assets/htmx.min.js"),
    ";\n",
    include_str!("../assets/hx-csp.min.js"),
    ";\n",
    include_str!("../assets/hx-sse.min.js"),
    ";\n",
    include_str!("../assets/console.js"),
);

/// The files.
const ASSETS: [Asset; 3] = [
    Asset { name: "console.css", content_type: "text/css; charset=utf-8", content: CSS },
    Asset { name: "icon.svg", content_type: "image/svg+xml", content: ICON },
    Asset { name: "console.js", content_type: "text/javascript; charset=utf-8", content: SCRIPT },
];

/// The hash of all files, in their addresses.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = DefaultHasher::new();
    for asset in &ASSETS {
        asset.content.hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
});

/// The version in the addresses of the files.
pub fn version() -> &'static str {
    &VERSION
}

/// Answers with a file. Browsers keep it, because its address changes with it.
pub async fn asset(
    Path((version, name)): Path<(String, String)>,
) -> Result<Response<Body>, Failure> {
    let asset = ASSETS.iter().find(|asset| asset.name == name).ok_or(Failure::NotFound)?;
    let mut response = asset.content.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.content_type));
    if version == *VERSION {
        let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
        headers.insert(CACHE_CONTROL, forever);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use sha2::Digest;

    #[test]
    fn the_scripts_of_others_are_unchanged() {
        for (script, hash) in [
            (include_str!("../assets/htmx.min.js"), HTMX),
            (include_str!("../assets/hx-csp.min.js"), HX_CSP),
            (include_str!("../assets/hx-sse.min.js"), HX_SSE),
        ] {
            let digest = sha2::Sha256::digest(script);
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, hash, "{}", &script[..80]);
        }
    }

    const HTMX: &str = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130";
    const HX_CSP: &str = "a7e1e6711ae6c3e50ad300fba7936cbe8d07599cdae313414a179ddd6b26e143";
    const HX_SSE: &str = "18ef2761356ec1fe0bb6d92612315b37517a7c1e9856b661c5ae81fef239d103";
}
