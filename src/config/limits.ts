// Settings that limit requests and organizations: quotas, rates, budgets, sizes, durations and destinations.

import { onOff, setting, whole } from './basics.ts'
import { destinations } from './values.ts'

const mostItems = 2 ** 31 - 1

export const quotaSettings = {
  quotaBytes: setting({
    env: 'PINFOLD_QUOTA_BYTES',
    parse: whole(0, Number.MAX_SAFE_INTEGER),
    default: '0',
    doc: 'Bytes that an organization can store.',
  }),
  quotaRepositories: setting({
    env: 'PINFOLD_QUOTA_REPOSITORIES',
    parse: whole(0, mostItems),
    default: '0',
    doc: 'Number of repositories in an organization.',
  }),
  quotaGroups: setting({
    env: 'PINFOLD_QUOTA_GROUPS',
    parse: whole(0, mostItems),
    default: '0',
    doc: 'Number of folders in an organization.',
  }),
  quotaUploads: setting({
    env: 'PINFOLD_QUOTA_UPLOADS',
    parse: whole(0, mostItems),
    default: '1000',
    doc: 'Number of blob uploads that an organization can have open at the same time.',
  }),
  quotaUploadPieces: setting({
    env: 'PINFOLD_QUOTA_UPLOAD_PIECES',
    parse: whole(0, mostItems),
    default: '10000',
    doc: 'Number of chunks in one blob upload.',
  }),
  quotaSubscriptions: setting({
    env: 'PINFOLD_QUOTA_SUBSCRIPTIONS',
    parse: whole(0, mostItems),
    default: '1000',
    doc: 'Number of event subscriptions in an organization.',
  }),
  quotaSinkSubscriptions: setting({
    env: 'PINFOLD_QUOTA_SINK_SUBSCRIPTIONS',
    parse: whole(0, mostItems),
    default: '100',
    doc: 'Number of event subscriptions of an organization that can have the same sink.',
  }),
  quotaPendingDeliveries: setting({
    env: 'PINFOLD_QUOTA_PENDING_DELIVERIES',
    parse: whole(0, mostItems),
    default: '10000',
    doc: 'Number of pending deliveries that are stored for an organization: failed deliveries, replays and redeliveries.',
    note: 'Each subscription can have 16 in any case.',
  }),
}

export const rateSettings = {
  requestsPerSource: setting({
    env: 'PINFOLD_REQUESTS_PER_SOURCE',
    parse: whole(1, 10_000_000),
    default: '12000',
    doc: 'Requests without a token of this server that one client address can send per minute, such as anonymous pulls.',
  }),
  refusalsPerSource: setting({
    env: 'PINFOLD_REFUSALS_PER_SOURCE',
    parse: whole(1, 10_000_000),
    default: '120',
    doc: 'Wrong tokens and passwords that one client address can send per minute before it gets 429.',
    note: 'Valid tokens and passwords are always accepted. Only requests signed for AWS get 429 in any case, because AWS is not asked then.',
  }),
  connectionsPerSource: setting({
    env: 'PINFOLD_CONNECTIONS_PER_SOURCE',
    parse: whole(1, 1_000_000),
    default: '1000',
    doc: 'Connections that one client address can have open; further ones are closed immediately.',
    note: 'Trusted proxies and the machine of the server have no limit.',
  }),
  exchangesPerSource: setting({
    env: 'PINFOLD_EXCHANGES_PER_SOURCE',
    parse: whole(1, 10_000_000),
    default: '600',
    doc: 'Token exchanges that one client address can request per minute.',
  }),
  exchangesPerIssuer: setting({
    env: 'PINFOLD_EXCHANGES_PER_ISSUER',
    parse: whole(1, 10_000_000),
    default: '6000',
    doc: 'Token exchanges per minute with tokens of one outside issuer, for the identities of one organization.',
  }),
  exchangesPerIdentity: setting({
    env: 'PINFOLD_EXCHANGES_PER_IDENTITY',
    parse: whole(1, 10_000_000),
    default: '3000',
    doc: 'Token exchanges per minute for one identity, including passwords at the registry.',
    note: 'The same limit applies to the registrations of one person.',
  }),
  scimRequests: setting({
    env: 'PINFOLD_SCIM_REQUESTS',
    parse: whole(1, 10_000_000),
    default: '3000',
    doc: 'SCIM requests per minute from the identity providers of one organization.',
    note: 'One client address can send ten times as many.',
  }),
  budgetCallerPercent: setting({
    env: 'PINFOLD_BUDGET_CALLER_PERCENT',
    parse: whole(1, 100),
    default: '50',
    doc: "Percentage of the server's main thread that one identity, or one address without a token, can use while other callers send requests.",
    note: '`100` turns this budget off. See [budgets](reference/limits.md#budgets).',
  }),
  budgetOrganizationPercent: setting({
    env: 'PINFOLD_BUDGET_ORGANIZATION_PERCENT',
    parse: whole(1, 100),
    default: '75',
    doc: 'Percentage of the main thread that all identities of one organization can use while other callers send requests.',
    note: '`100` turns this budget off.',
  }),
  budgetBurstMs: setting({
    env: 'PINFOLD_BUDGET_BURST_MS',
    parse: whole(1, 600_000),
    default: '2000',
    doc: 'Milliseconds of the main thread that a caller can use in a burst, in addition to its budget.',
  }),
}

export const requestSettings = {
  maxBodyBytes: setting({
    env: 'PINFOLD_MAX_BODY_BYTES',
    parse: whole(1024, 64 * 1024 * 1024),
    default: String(4 * 1024 * 1024),
    doc: 'Largest body of an API request in bytes, over REST and gRPC.',
  }),
  messageBytesPerSource: setting({
    env: 'PINFOLD_MESSAGE_BYTES_PER_SOURCE',
    parse: whole(64 * 1024, 16 * 1024 * 1024 * 1024),
    default: String(32 * 1024 * 1024),
    doc: 'Bytes of request bodies and gRPC messages of one client address that can be in memory.',
    note: 'Compressed gRPC messages count on arrival and again after decompression. The limit is never lower than two bodies of `PINFOLD_MAX_BODY_BYTES`.',
  }),
  messageBytes: setting({
    env: 'PINFOLD_MESSAGE_BYTES',
    parse: whole(64 * 1024, 64 * 1024 * 1024 * 1024),
    default: String(128 * 1024 * 1024),
    doc: 'Bytes of request bodies and gRPC messages of all clients together that can be in memory on one server.',
    note: 'Requests without a token have separate limits: a quarter of these two. Buffers of blob uploads may use half of these two in addition.',
  }),
  headersTimeoutMs: setting({
    env: 'PINFOLD_HEADERS_TIMEOUT_MS',
    parse: whole(100, 600_000),
    default: '10000',
    doc: 'Milliseconds that a client has to send the headers of a request.',
  }),
  requestTimeoutMs: setting({
    env: 'PINFOLD_REQUEST_TIMEOUT_MS',
    parse: whole(100, 600_000),
    default: '30000',
    doc: 'Milliseconds that a client has to send an API request, and that the server has to answer it.',
  }),
  keepAliveTimeoutMs: setting({
    env: 'PINFOLD_KEEP_ALIVE_TIMEOUT_MS',
    parse: whole(100, 600_000),
    default: '65000',
    doc: 'Milliseconds that an idle connection stays open.',
  }),
}

export const outgoingSettings = {
  issuersPrivate: setting({
    env: 'PINFOLD_ISSUERS_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'Private hosts of token issuers and of the identity providers of organizations.',
  }),
  sinksPrivate: setting({
    env: 'PINFOLD_SINKS_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'Private hosts of the sinks of event subscriptions.',
  }),
  upstreamsPrivate: setting({
    env: 'PINFOLD_UPSTREAMS_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'Private hosts of the [upstreams](reference/mirrors.md) of mirrors.',
  }),
  witnessesPrivate: setting({
    env: 'PINFOLD_WITNESSES_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'Private hosts of the [witnesses](reference/ledger-proofs.md#witnesses) of transparency logs.',
  }),
  vulnerabilityPrivate: setting({
    env: 'PINFOLD_VULNERABILITY_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'Private hosts of vulnerability data sources, such as that of `PINFOLD_VULNERABILITY_MIRROR`.',
    note: 'Only the server needs this, not `pinfold vulnerabilities sync`.',
  }),
  scannersPrivate: setting({
    env: 'PINFOLD_SCANNERS_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'Private hosts of [scanners](reference/vulnerabilities.md#scanner-adapters).',
  }),
  allowPrivateAddresses: setting({
    env: 'PINFOLD_ALLOW_PRIVATE_ADDRESSES',
    parse: onOff,
    default: 'off',
    doc: '`on` allows all private addresses for issuers, sinks, upstreams and witnesses; prefer the lists above.',
  }),
  allowInsecureIssuers: setting({
    env: 'PINFOLD_ALLOW_INSECURE_ISSUERS',
    parse: onOff,
    default: 'off',
    doc: '`on` allows `http://` URLs of token issuers.',
    note: 'An attacker who can change this traffic can act as any identity of the issuer.',
  }),
  allowInsecureSinks: setting({
    env: 'PINFOLD_ALLOW_INSECURE_SINKS',
    parse: onOff,
    default: 'off',
    doc: '`on` allows `http://` URLs of sinks.',
    note: 'An attacker who can read this traffic can read the events.',
  }),
  allowInsecureUpstreams: setting({
    env: 'PINFOLD_ALLOW_INSECURE_UPSTREAMS',
    parse: onOff,
    default: 'off',
    doc: '`on` allows `http://` URLs of upstreams and witnesses.',
    note: 'An attacker who can read this traffic can read the passwords of upstreams.',
  }),
  allowInsecureScanners: setting({
    env: 'PINFOLD_ALLOW_INSECURE_SCANNERS',
    parse: onOff,
    default: 'off',
    doc: '`on` allows `http://` URLs of scanners.',
    note: 'An attacker who can read this traffic can pull the scanned images. One who can change it can falsify the findings.',
  }),
}
