// Settings for requests from and to other machines: limits for requests without a valid token, and the addresses that the
// server's own requests may go to.

import { contact, onOff, optionalAddress, secret, setting, whole } from './basics.ts'
import { destinations } from './values.ts'

export const edgeSettings = {
  tlsCert: setting({
    env: 'PINFOLD_TLS_CERT',
    flag: '--tls-cert',
    parse: String,
    default: '',
    doc: 'File with the certificate and its chain, in PEM format: the server speaks TLS itself. Replaced files are in use within ten seconds, or at once after SIGUSR2. Default: it speaks cleartext, for a proxy that ends TLS.',
  }),
  tlsKey: setting({
    env: 'PINFOLD_TLS_KEY',
    flag: '--tls-key',
    parse: String,
    default: '',
    doc: 'File with the key of that certificate, in PEM format and not encrypted.',
  }),
  metrics: setting({
    env: 'PINFOLD_METRICS',
    parse: onOff,
    default: 'on',
    doc: '`off` removes `/metrics`.',
  }),
  metricsListen: setting({
    env: 'PINFOLD_METRICS_LISTEN',
    parse: optionalAddress,
    default: '',
    doc: "An address for `/metrics` alone, where it needs no credential. Default: the address served on, where it takes the operator's token or `PINFOLD_METRICS_TOKEN`.",
  }),
  metricsToken: setting({
    env: 'PINFOLD_METRICS_TOKEN',
    parse: secret,
    default: '',
    doc: 'A bearer token that `/metrics` takes, of 16 to 256 characters. Default: only the operator reads it.',
  }),
  allowPrivateAddresses: setting({
    env: 'PINFOLD_ALLOW_PRIVATE_ADDRESSES',
    parse: onOff,
    default: 'off',
    doc: '`on` lets issuers, sinks, upstreams and witnesses be at any private address. List them in `PINFOLD_ISSUERS_PRIVATE`, `PINFOLD_SINKS_PRIVATE`, `PINFOLD_UPSTREAMS_PRIVATE` and `PINFOLD_WITNESSES_PRIVATE` instead.',
  }),
  issuersPrivate: setting({
    env: 'PINFOLD_ISSUERS_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'Host names, addresses and CIDR ranges, with commas, where the issuers of identities and the identity providers of organisations may be although the address is private, such as `idp.corp.internal,10.2.0.0/16`.',
  }),
  sinksPrivate: setting({
    env: 'PINFOLD_SINKS_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'The same for the sinks of subscriptions.',
  }),
  upstreamsPrivate: setting({
    env: 'PINFOLD_UPSTREAMS_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'The same for the [upstreams](reference/mirrors.md) of repositories.',
  }),
  witnessesPrivate: setting({
    env: 'PINFOLD_WITNESSES_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'The same for the [witnesses](reference/ledger-proofs.md#witnesses) of the ledger.',
  }),
  allowInsecureUpstreams: setting({
    env: 'PINFOLD_ALLOW_INSECURE_UPSTREAMS',
    parse: onOff,
    default: 'off',
    doc: '`on` lets upstreams, and witnesses of the ledger, be asked over `http://`. Whoever sees that traffic reads the passwords of upstreams.',
  }),
  allowInsecureIssuers: setting({
    env: 'PINFOLD_ALLOW_INSECURE_ISSUERS',
    parse: onOff,
    default: 'off',
    doc: '`on` lets the issuers of identities be `http://` URLs. Whoever can alter that traffic can then be any of their identities.',
  }),
  allowInsecureSinks: setting({
    env: 'PINFOLD_ALLOW_INSECURE_SINKS',
    parse: onOff,
    default: 'off',
    doc: '`on` lets the sinks of subscriptions be `http://` URLs. Whoever sees that traffic reads the events.',
  }),
  deviceSignIn: setting({
    env: 'PINFOLD_DEVICE_SIGN_IN',
    parse: onOff,
    default: 'on',
    doc: '`off` takes away the sign-in of programs by a code that a person types into a browser elsewhere.',
  }),
  exchangesPerSource: setting({
    env: 'PINFOLD_EXCHANGES_PER_SOURCE',
    parse: whole(1, 10_000_000),
    default: '600',
    doc: 'How many token exchanges one client address may ask for in a minute.',
  }),
  exchangesPerIdentity: setting({
    env: 'PINFOLD_EXCHANGES_PER_IDENTITY',
    parse: whole(1, 10_000_000),
    default: '3000',
    doc: 'How many tokens may be exchanged for one identity in a minute, passwords at the registry included, and how often one person may ask to register.',
  }),
  connectionsPerSource: setting({
    env: 'PINFOLD_CONNECTIONS_PER_SOURCE',
    parse: whole(1, 1_000_000),
    default: '1000',
    doc: 'How many connections one client address may have open at once; what is above that is closed at once. Trusted proxies and the machine itself may have any number.',
  }),
  securityContact: setting({
    env: 'PINFOLD_SECURITY_CONTACT',
    parse: contact,
    default: '',
    doc: 'Whom to tell about a vulnerability of this server, as a `mailto:` or `https:` URL, for `/.well-known/security.txt`. Default: there is none.',
  }),
  requestsPerSource: setting({
    env: 'PINFOLD_REQUESTS_PER_SOURCE',
    parse: whole(1, 10_000_000),
    default: '12000',
    doc: 'How many requests without a token of ours one client address may send in a minute: pulls of public images, requests for tokens, documents.',
  }),
  refusalsPerSource: setting({
    env: 'PINFOLD_REFUSALS_PER_SOURCE',
    parse: whole(1, 10_000_000),
    default: '120',
    doc: 'How many wrong tokens and passwords one client address may send in a minute; those above it are answered with 429. Good ones always work, but for requests signed for AWS, which is not asked meanwhile.',
  }),
  exchangesPerIssuer: setting({
    env: 'PINFOLD_EXCHANGES_PER_ISSUER',
    parse: whole(1, 10_000_000),
    default: '6000',
    doc: 'How many tokens of one outside issuer may be exchanged in a minute for the identities of one organisation.',
  }),
  scimRequests: setting({
    env: 'PINFOLD_SCIM_REQUESTS',
    parse: whole(1, 10_000_000),
    default: '3000',
    doc: 'How many SCIM requests the identity providers of one organisation may send in a minute; ten times as many may come from one address.',
  }),
  budgetCallerPercent: setting({
    env: 'PINFOLD_BUDGET_CALLER_PERCENT',
    parse: whole(1, 100),
    default: '50',
    doc: "How much of the server's main thread one identity, or one address without a token, may use for long while other callers send requests, in percent. `100` is no budget. See [limits](reference/limits.md#budgets).",
  }),
  budgetOrganizationPercent: setting({
    env: 'PINFOLD_BUDGET_ORGANIZATION_PERCENT',
    parse: whole(1, 100),
    default: '75',
    doc: 'The same for all identities of one organization together, while callers outside of it send requests.',
  }),
  budgetBurstMs: setting({
    env: 'PINFOLD_BUDGET_BURST_MS',
    parse: whole(1, 600_000),
    default: '2000',
    doc: 'How much of the main thread each of them may use beyond that at once, in milliseconds.',
  }),
  maxBodyBytes: setting({
    env: 'PINFOLD_MAX_BODY_BYTES',
    parse: whole(1024, 64 * 1024 * 1024),
    default: String(4 * 1024 * 1024),
    doc: 'The largest body of an API request, over REST and gRPC.',
  }),
  messageBytesPerSource: setting({
    env: 'PINFOLD_MESSAGE_BYTES_PER_SOURCE',
    parse: whole(64 * 1024, 16 * 1024 * 1024 * 1024),
    default: String(32 * 1024 * 1024),
    doc: 'How many bytes of gRPC messages one client address may have in flight, counted as they arrive and again as they are decompressed. Two messages of `PINFOLD_MAX_BODY_BYTES` are always accepted.',
  }),
  messageBytes: setting({
    env: 'PINFOLD_MESSAGE_BYTES',
    parse: whole(64 * 1024, 64 * 1024 * 1024 * 1024),
    default: String(128 * 1024 * 1024),
    doc: 'How many bytes of gRPC messages all clients together may have in flight on one server. Methods that need no token have a budget of their own: a quarter of these two.',
  }),
  headersTimeoutMs: setting({
    env: 'PINFOLD_HEADERS_TIMEOUT_MS',
    parse: whole(100, 600_000),
    default: '10000',
    doc: 'How long a client may take to send its headers.',
  }),
  requestTimeoutMs: setting({
    env: 'PINFOLD_REQUEST_TIMEOUT_MS',
    parse: whole(100, 600_000),
    default: '30000',
    doc: 'How long a client may take to send an API request, and how long we may take to answer it.',
  }),
  keepAliveTimeoutMs: setting({
    env: 'PINFOLD_KEEP_ALIVE_TIMEOUT_MS',
    parse: whole(100, 600_000),
    default: '65000',
    doc: 'How long an idle connection stays open.',
  }),
}
