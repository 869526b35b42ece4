//! The URL of the collector.

use http::Uri;
use http::uri::Scheme;
use opentelemetry_otlp::ExporterBuildError;

/// Why no spans can be sent to a URL.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadEndpoint {
    // The URL is not repeated, because it may contain a password.
    #[error("it is not a URL like http://127.0.0.1:4318, without a user and a password")]
    NotAUrl,
    #[error("https is not supported: use a collector on this machine, which can forward the spans")]
    Https,
    #[error(transparent)]
    Exporter(#[from] ExporterBuildError),
}

/// The URL that accepts traces. If the URL has no path, it is the collector's.
pub(super) fn traces_url(endpoint: &str) -> Result<String, BadEndpoint> {
    let url: Uri = endpoint.trim().parse().map_err(|_| BadEndpoint::NotAUrl)?;
    match url.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => {}
        Some(scheme) if *scheme == Scheme::HTTPS => return Err(BadEndpoint::Https),
        _ => return Err(BadEndpoint::NotAUrl),
    }
    let address = plain_authority(&url).ok_or(BadEndpoint::NotAUrl)?;
    let path = match url.path() {
        "" | "/" => "/v1/traces",
        path => path,
    };
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    Ok(format!("http://{address}{path}{query}"))
}

/// The host with its port. `None` if the URL contains anything else before the path, such as a password or an invalid port.
fn plain_authority(url: &Uri) -> Option<&str> {
    let authority = url.authority()?;
    let host = authority.host();
    let expected = authority.port_u16().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    (!host.is_empty() && authority.as_str() == expected).then_some(authority.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_are_accepted() {
        let url = |endpoint: &str| traces_url(endpoint).map_err(|error| error.to_string());
        for (endpoint, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            (" http://collector/ ", "http://collector/v1/traces"),
            ("http://[::1]:4318/otlp/v1/traces?a=b", "http://[::1]:4318/otlp/v1/traces?a=b"),
        ] {
            assert_eq!(url(endpoint).unwrap(), expected);
        }
        for endpoint in ["", "4318", "localhost:4318", "grpc://collector", "http://", "http://:4318", "http://a:99999"]
        {
            assert!(url(endpoint).unwrap_err().contains("not a URL"), "{endpoint}");
        }
        let with_password = url("http://ann:secret@collector").unwrap_err();
        assert!(with_password.contains("without a user") && !with_password.contains("secret"));
        assert!(url("https://collector").unwrap_err().contains("https is not supported"));
    }
}
