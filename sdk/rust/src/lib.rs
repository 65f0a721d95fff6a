//! A tool in Rust: the whole of it.

wit_bindgen::generate!({ path: "wit" });

use exports::stockade::tool::tools::{CallContext, Error, Guest, Output};
use stockade::tool::log::{Level, log};

/// The manifest, once for `describe` and once as the custom section in which
/// the host finds it without running anything.
const MANIFEST: &str = include_str!("../manifest.json");

#[used]
#[unsafe(link_section = "stockade-tool")]
static SECTION: [u8; MANIFEST.len()] = *include_bytes!("../manifest.json");

#[derive(serde::Deserialize)]
struct Greet {
    name: String,
}

struct Tools;

export!(Tools);

impl Guest for Tools {
    fn describe() -> String {
        MANIFEST.into()
    }

    fn call(_: CallContext, tool: String, args: String) -> Result<Output, Error> {
        match tool.as_str() {
            "greet" => greet(serde_json::from_str(&args).map_err(invalid)?),
            _ => Err(Error::UnknownTool(tool)),
        }
    }
}

fn greet(args: Greet) -> Result<Output, Error> {
    if args.name.is_empty() {
        return Err(invalid("the name is empty; say who to greet"));
    }
    log(Level::Info, &format!("greeting {}", args.name));
    let result = serde_json::json!({"output": format!("Hello, {}!", args.name)});
    Ok(Output { content: vec![], structured: Some(result.to_string()) })
}

fn invalid(why: impl ToString) -> Error {
    Error::InvalidInput(why.to_string())
}
