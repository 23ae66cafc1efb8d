//! TLS for `https://` films: the web's usual authorities, or one's own.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A configuration that trusts the authorities in the PEM file, or without one those of the web.
/// Errors name the file and what is wrong with it.
pub fn client_config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let roots = match authorities {
        None => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
        Some(path) => roots(path)?,
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The authorities in a PEM file: at least one, each one readable.
pub fn roots(path: &Path) -> Result<RootCertStore, String> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| format!("{shown} is no PEM file: {error}"))?;
        roots.add(certificate).map_err(|error| format!("{shown} holds a certificate that is broken: {error}"))?;
    }
    if roots.is_empty() {
        return Err(format!("{shown} holds no certificate (a PEM block BEGIN CERTIFICATE)"));
    }
    Ok(roots)
}
