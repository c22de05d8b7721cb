// Settings of the addresses of the server, of failover and shutdown, and of the API.

import type { Vendor } from '#lib/naming/vendor.ts'
import { address, baseUrl, contact, onOff, setting, whole } from './basics.ts'
import { domain, hostPaths, hosts, networks, optionalDomain, vendorToken } from './values.ts'

export const addressSettings = {
  listen: setting({
    env: 'PINFOLD_LISTEN',
    flag: '--listen',
    parse: address,
    default: '127.0.0.1:8080',
    doc: 'Address and port that the server listens on; port 0 selects a free port.',
  }),
  url: setting({
    env: 'PINFOLD_URL',
    flag: '--url',
    parse: baseUrl,
    default: '',
    defaultMeans: '`http://` and the listen address, or `https://` with a certificate',
    doc: 'Public URL of the server, which is also the issuer and the audience of its tokens.',
    note: 'The URL has no path.',
  }),
  hosts: setting({
    env: 'PINFOLD_HOSTS',
    parse: hosts,
    default: '',
    doc: 'Additional names that clients use for the server, separated by commas: `HOST`, `HOST:PORT` or `SCHEME://HOST:PORT`.',
    note: 'Clients then get their tokens at the name that they use.',
  }),
  hostPaths: setting({
    env: 'PINFOLD_HOST_PATHS',
    parse: hostPaths,
    default: '',
    doc: 'JSON object with a path prefix for each host name, for clients whose mirror settings accept no path.',
    note: 'Example: `{"slow.example":"min-7d/acme/hub"}` adds `min-7d/acme/hub` to the path of every repository at `slow.example`. These names need not be in `PINFOLD_HOSTS`. See [views](reference/views.md).',
  }),
  trustedProxies: setting({
    env: 'PINFOLD_TRUSTED_PROXIES',
    parse: networks,
    default: '',
    doc: 'Addresses and CIDR ranges of reverse proxies, separated by commas, whose `X-Forwarded-*` headers the server trusts.',
    note: '`X-Forwarded-For` has the address of the client, `X-Forwarded-Host` and `X-Forwarded-Proto` the URL that it uses.',
  }),
  tlsCert: setting({
    env: 'PINFOLD_TLS_CERT',
    flag: '--tls-cert',
    parse: String,
    default: '',
    defaultMeans: 'plain HTTP, for a reverse proxy that terminates TLS',
    doc: 'File with the TLS certificate and its chain, in PEM format.',
    note: 'The server loads replaced files within 10 seconds, or at once after SIGUSR2.',
  }),
  tlsKey: setting({
    env: 'PINFOLD_TLS_KEY',
    flag: '--tls-key',
    parse: String,
    default: '',
    doc: 'File with the private key of the TLS certificate, in PEM format and not encrypted.',
  }),
}

export const shutdownSettings = {
  leaseMs: setting({
    env: 'PINFOLD_LEASE_MS',
    parse: whole(100, 600_000),
    default: '15000',
    doc: 'Milliseconds without a heartbeat after which a server counts as failed and other servers take over its jobs.',
  }),
  lameduckMs: setting({
    env: 'PINFOLD_LAMEDUCK_MS',
    parse: whole(0, 600_000),
    default: '0',
    doc: 'Milliseconds after SIGTERM in which `/readyz` answers 503 while the server still accepts requests.',
    note: 'A load balancer can use this time to stop sending requests. `PINFOLD_DRAIN_MS` begins after it.',
  }),
  drainMs: setting({
    env: 'PINFOLD_DRAIN_MS',
    parse: whole(0, 600_000),
    default: '10000',
    doc: 'Milliseconds that running requests, and then running deliveries, have to finish after SIGTERM.',
  }),
}

export const apiSettings = {
  reflection: setting({
    env: 'PINFOLD_REFLECTION',
    parse: onOff,
    default: 'on',
    doc: '`off` disables gRPC server reflection.',
  }),
  errorDomain: setting({
    env: 'PINFOLD_ERROR_DOMAIN',
    parse: domain,
    default: 'pinfold.dev',
    doc: 'Field `domain` of the `ErrorInfo` in every error.',
  }),
  securityContact: setting({
    env: 'PINFOLD_SECURITY_CONTACT',
    parse: contact,
    default: '',
    defaultMeans: 'none, so the file is not served',
    doc: 'Contact for reports of vulnerabilities in this server, as a `mailto:` or `https:` URL, in `/.well-known/security.txt`.',
  }),
}

export const compatSettings = {
  compatVendor: setting({
    env: 'PINFOLD_COMPAT_VENDOR',
    parse: vendorToken,
    default: '',
    doc: 'Name that clients of another product use instead of `pinfold`, and that the server accepts too.',
    note: 'See [compatibility](reference/compatibility.md).',
  }),
  compatVendorDomain: setting({
    env: 'PINFOLD_COMPAT_VENDOR_DOMAIN',
    parse: optionalDomain,
    default: '',
    defaultMeans: 'the name and `.dev`',
    doc: 'Error domain that these clients expect instead of `PINFOLD_ERROR_DOMAIN`.',
  }),
}

/** Names of another product that the API also accepts (compatibility profile). Undefined without this setting. */
export function vendorOf(config: { compatVendor: string; compatVendorDomain: string }): Vendor | undefined {
  const { compatVendor: token, compatVendorDomain: domain } = config
  return token === '' ? undefined : { token, domain: domain || `${token}.dev` }
}
