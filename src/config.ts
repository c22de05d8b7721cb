import { readFileSync } from 'node:fs'
import {
  address,
  baseUrl,
  blobStore,
  ConfigError,
  databaseUrl,
  documents,
  domain,
  folder,
  masterKey,
  methodNames,
  networks,
  oneOf,
  onOff,
  organisation,
  records,
  whole,
} from './config-values.ts'

export { baseUrl, ConfigError }

type Setting<T> = { env: string; flag?: string; parse: (text: string, name: string) => T; default: string; doc: string }

function setting<T>(of: Setting<T>): Setting<T> {
  return of
}

/** Every setting there is. `docs/config.md` and `pinfold config` are made from this table. */
export const settings = {
  listen: setting({
    env: 'PINFOLD_LISTEN',
    flag: '--listen',
    parse: address,
    default: '127.0.0.1:8080',
    doc: 'Address to serve on. Port 0 takes a free one.',
  }),
  url: setting({
    env: 'PINFOLD_URL',
    flag: '--url',
    parse: baseUrl,
    default: '',
    doc: 'What clients call us: issuer, audience and links are made from it. Default: `http://` and the address served on.',
  }),
  data: setting({
    env: 'PINFOLD_DATA',
    flag: '--data',
    parse: folder,
    default: 'data',
    doc: 'Folder of the embedded database and of the master key.',
  }),
  database: setting({
    env: 'PINFOLD_DATABASE',
    flag: '--database',
    parse: databaseUrl,
    default: '',
    doc: 'A `postgres://` URL; `?schema=NAME` picks a schema. Default: the embedded database in the data folder.',
  }),
  masterKey: setting({
    env: 'PINFOLD_MASTER_KEY',
    parse: masterKey,
    default: '',
    doc: '32 bytes as base64 or hex that encrypt every stored secret. Required with a database URL. Default: `master.key` in the data folder, made on the first start.',
  }),
  blobs: setting({
    env: 'PINFOLD_BLOBS',
    flag: '--blobs',
    parse: blobStore,
    default: '',
    doc: 'Folder of the blobs, as a path or a `file://` URL. Several servers must share it. Default: `blobs` in the data folder.',
  }),
  sparse: setting({
    env: 'PINFOLD_SPARSE',
    parse: oneOf('off', 'indexes', 'all'),
    default: 'off',
    doc: 'Which manifests may be pushed although content that they list is missing: none (`off`), `indexes`, or `all`.',
  }),
  blobGraceSeconds: setting({
    env: 'PINFOLD_BLOB_GRACE_SECONDS',
    parse: whole(1, 365 * 86_400),
    default: '86400',
    doc: 'How long a blob that no manifest uses, or an upload that nobody continues, is kept after a push last touched it.',
  }),
  publicOrg: setting({
    env: 'PINFOLD_PUBLIC_ORG',
    parse: organisation,
    default: 'public',
    doc: 'Name of the organisation whose images anybody may pull.',
  }),
  ociTagHistory606: setting({
    env: 'PINFOLD_OCI_TAG_HISTORY_606',
    parse: onOff,
    default: 'on',
    doc: 'Serve `/v2/<name>/_oci/tag-history/<tag>` as pull request 606 of the OCI distribution specification drafts it.',
  }),
  errorDomain: setting({
    env: 'PINFOLD_ERROR_DOMAIN',
    parse: domain,
    default: 'pinfold.dev',
    doc: '`domain` of the ErrorInfo in every error.',
  }),
  openOrganizations: setting({
    env: 'PINFOLD_OPEN_ORGANIZATIONS',
    parse: onOff,
    default: 'off',
    doc: '`on` lets every authenticated caller create organisations; otherwise only the operator does.',
  }),
  peopleIssuers: setting({
    env: 'PINFOLD_PEOPLE_ISSUERS',
    parse: records('issuer', 'audience'),
    default: '',
    doc: 'The sign-in providers whose tokens people may register with, as JSON: `[{"issuer": "https://…", "audience": "…"}]`. `audience` is the client id that their tokens must be meant for. Default: nobody can register.',
  }),
  termsDocuments: setting({
    env: 'PINFOLD_TERMS_DOCUMENTS',
    parse: documents,
    default: '',
    doc: 'The documents that organisations can accept, as JSON: `[{"id": "terms-of-service.v1", "label": "…", "url": "https://…"}]`.',
  }),
  termsMethods: setting({
    env: 'PINFOLD_TERMS_METHODS',
    parse: methodNames,
    default: '',
    doc: 'Methods that wait until all of these documents are accepted, by full name, with commas, such as `pinfold.platform.registry.v2.ReposService/CreateRepo`. Default: none.',
  }),
  awsStsUrl: setting({
    env: 'PINFOLD_AWS_STS_URL',
    parse: baseUrl,
    default: 'https://sts.amazonaws.com',
    doc: 'Where AWS gives credentials, for checks of account associations.',
  }),
  googleStsUrl: setting({
    env: 'PINFOLD_GOOGLE_STS_URL',
    parse: baseUrl,
    default: 'https://sts.googleapis.com',
    doc: 'Where Google Cloud exchanges tokens, for the same.',
  }),
  googleIamUrl: setting({
    env: 'PINFOLD_GOOGLE_IAM_URL',
    parse: baseUrl,
    default: 'https://iamcredentials.googleapis.com',
    doc: 'Where Google Cloud gives credentials of service accounts, for the same.',
  }),
  azureLoginUrl: setting({
    env: 'PINFOLD_AZURE_LOGIN_URL',
    parse: baseUrl,
    default: 'https://login.microsoftonline.com',
    doc: 'Where Azure signs in applications, for the same.',
  }),
  logLevel: setting({
    env: 'PINFOLD_LOG_LEVEL',
    parse: oneOf('debug', 'info', 'warn', 'error'),
    default: 'info',
    doc: 'The least level that is logged: `debug`, `info`, `warn` or `error`.',
  }),
  metrics: setting({
    env: 'PINFOLD_METRICS',
    parse: onOff,
    default: 'on',
    doc: '`off` removes `/metrics`, which needs no credential.',
  }),
  reflection: setting({
    env: 'PINFOLD_REFLECTION',
    parse: onOff,
    default: 'on',
    doc: '`off` removes gRPC server reflection.',
  }),
  allowPrivateAddresses: setting({
    env: 'PINFOLD_ALLOW_PRIVATE_ADDRESSES',
    parse: onOff,
    default: 'off',
    doc: "`on` lets requests that we make, such as for the keys of an identity's issuer, go to private addresses.",
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
  deliveryTimeoutMs: setting({
    env: 'PINFOLD_DELIVERY_TIMEOUT_MS',
    parse: whole(50, 120_000),
    default: '10000',
    doc: 'How long a sink may take to answer. When a server dies, another takes over its deliveries after twice that.',
  }),
  deliveriesInFlight: setting({
    env: 'PINFOLD_DELIVERIES_IN_FLIGHT',
    parse: whole(1, 1000),
    default: '32',
    doc: 'How many deliveries may be on their way to one sink at once.',
  }),
  deliveryRetryFirstMs: setting({
    env: 'PINFOLD_DELIVERY_RETRY_FIRST_MS',
    parse: whole(1, 3_600_000),
    default: '1000',
    doc: 'How long to wait after a delivery has failed once; each further failure doubles it. A random part is taken off.',
  }),
  deliveryRetryMostMs: setting({
    env: 'PINFOLD_DELIVERY_RETRY_MOST_MS',
    parse: whole(1, 86_400_000),
    default: '3600000',
    doc: 'The longest wait between two attempts.',
  }),
  deliveryGiveUpMs: setting({
    env: 'PINFOLD_DELIVERY_GIVE_UP_MS',
    parse: whole(1, 30 * 86_400_000),
    default: '259200000',
    doc: 'How old an event is when a failure to deliver it is the last: three days.',
  }),
  eventRetentionDays: setting({
    env: 'PINFOLD_EVENT_RETENTION_DAYS',
    parse: whole(1, 3650),
    default: '30',
    doc: 'How long events and their deliveries are kept, so that they can be replayed.',
  }),
  keyRotationDays: setting({
    env: 'PINFOLD_KEY_ROTATION_DAYS',
    parse: whole(3, 3650),
    default: '90',
    doc: 'After how many days tokens are signed with a new key. It is published a day before, the old one for two days after.',
  }),
  exchangesPerSource: setting({
    env: 'PINFOLD_EXCHANGES_PER_SOURCE',
    parse: whole(1, 10_000_000),
    default: '600',
    doc: 'How many token exchanges one client address may ask for in a minute.',
  }),
  exchangesPerIssuer: setting({
    env: 'PINFOLD_EXCHANGES_PER_ISSUER',
    parse: whole(1, 10_000_000),
    default: '6000',
    doc: 'How many tokens of one outside issuer may be exchanged in a minute.',
  }),
  trustedProxies: setting({
    env: 'PINFOLD_TRUSTED_PROXIES',
    parse: networks,
    default: '',
    doc: 'Addresses and CIDR ranges, with commas, of proxies whose `X-Forwarded-For` says who the client is.',
  }),
  maxBodyBytes: setting({
    env: 'PINFOLD_MAX_BODY_BYTES',
    parse: whole(1024, 64 * 1024 * 1024),
    default: String(4 * 1024 * 1024),
    doc: 'The largest body of an API request, over REST and gRPC.',
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
  streamsPerCaller: setting({
    env: 'PINFOLD_STREAMS_PER_CALLER',
    parse: whole(1, 10_000),
    default: '20',
    doc: 'How many streams of events one caller may have open at once, on each server.',
  }),
  streamIdleMs: setting({
    env: 'PINFOLD_STREAM_IDLE_MS',
    parse: whole(10, 600_000),
    default: '15000',
    doc: 'How long a stream of events may be silent; then it says that it is still there.',
  }),
  auditDays: setting({
    env: 'PINFOLD_AUDIT_DAYS',
    parse: whole(0, 36_500),
    default: '0',
    doc: 'After how many days entries of the audit log are deleted. `0` keeps them for good.',
  }),
  leaseMs: setting({
    env: 'PINFOLD_LEASE_MS',
    parse: whole(100, 600_000),
    default: '15000',
    doc: 'After how long without a sign of life a node counts as gone, and others take over what only one may do.',
  }),
  drainMs: setting({
    env: 'PINFOLD_DRAIN_MS',
    parse: whole(0, 600_000),
    default: '10000',
    doc: 'How long requests in flight may go on after SIGTERM.',
  }),
}

/** Settings of the commands that call a server. The server does not read them, and does not mind them. */
export const clientVariables: Record<string, string> = {
  PINFOLD_API: 'The URL of the server.',
  PINFOLD_IDENTITY: 'The uid of the identity to sign in as.',
  PINFOLD_ID_TOKEN: "The platform's token to sign in with, as in the `id_tokens` of GitLab.",
  PINFOLD_TOKEN: 'A token of the server to use instead of signing in.',
}

export type Config = { [K in keyof typeof settings]: ReturnType<(typeof settings)[K]['parse']> }

/** Throws one ConfigError that lists every bad setting. Flags, where given, are named as such. */
export function readConfig(
  env: Record<string, string | undefined>,
  flags: Record<string, string | undefined> = {},
): Config {
  const config: Record<string, unknown> = {}
  const problems: string[] = []
  for (const [key, { env: variable, flag, parse, default: fallback }] of Object.entries(settings)) {
    const given = flags[key]
    try {
      config[key] = parse(given ?? (env[variable] || fallback), given !== undefined && flag ? flag : variable)
    } catch (error) {
      problems.push((error as Error).message)
    }
  }
  for (const name of Object.keys(env)) {
    if (name.startsWith('PINFOLD_') && !isKnown(name)) problems.push(`${name} is not a setting`)
  }
  const read = config as Config
  if (problems.length === 0 && read.database !== '' && read.masterKey === '') {
    problems.push('a database URL needs PINFOLD_MASTER_KEY, 32 bytes as base64 or hex')
  }
  if (problems.length === 0 && read.termsMethods.length > 0 && read.termsDocuments.length === 0) {
    problems.push('PINFOLD_TERMS_METHODS needs PINFOLD_TERMS_DOCUMENTS, which say what is to be accepted')
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return read
}

function isKnown(variable: string): boolean {
  const names: readonly string[] = [...Object.values(settings).map(({ env }) => env), ...Object.keys(clientVariables)]
  return names.includes(variable) || variable.startsWith('PINFOLD_TEST_')
}

export const version: string = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
).version
