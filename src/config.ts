import { address, baseUrl, ConfigError, defaultData, folder, oneOf, onOff, setting, whole } from './config/basics.ts'
import { blobSettings, redirectProblems } from './config/blobs.ts'
import { compatSettings, vendorOf } from './config/compat.ts'
import { databaseSettings } from './config/database.ts'
import { edgeSettings } from './config/edge.ts'
import { traceSettings } from './config/traces.ts'
import { unknownSettings } from './config/unknown.ts'
import {
  algorithms,
  documents,
  domain,
  hostPaths,
  hosts,
  logKeys,
  masterKey,
  methodNames,
  networks,
  organisation,
  peopleProviders,
  witnesses,
} from './config/values.ts'
import { vulnerabilitySettings } from './config/vulnerabilities.ts'

export { ConfigError, vendorOf }

/** All settings. `docs/config.md` and `pinfold config` are made from this table. */
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
    doc: 'What clients call us: issuer, audience and links are made from it. Default: `http://`, or `https://` with a certificate, and the address served on.',
  }),
  hosts: setting({
    env: 'PINFOLD_HOSTS',
    parse: hosts,
    default: '',
    doc: 'Further names that clients may call us by, as `host`, `host:port` or `scheme://host:port`, with commas. Where to get a token then names the host that the client has used.',
  }),
  hostPaths: setting({
    env: 'PINFOLD_HOST_PATHS',
    parse: hostPaths,
    default: '',
    doc: 'Names of hosts, as JSON, with what stands before the path of every repository there: `{"slow.example":"min-7d/acme/hub"}` serves clients of mirrors that take no path. Clients may call us by these names, too. See [views](reference/views.md).',
  }),
  data: setting({
    env: 'PINFOLD_DATA',
    flag: '--data',
    parse: folder,
    default: defaultData,
    doc: 'Folder of the embedded database and of the master key.',
  }),
  ...databaseSettings,
  masterKey: setting({
    env: 'PINFOLD_MASTER_KEY',
    parse: masterKey,
    default: '',
    doc: '32 bytes as base64 or hex that encrypt every stored secret. Required with a database URL. Default: `master.key` in the data folder, made on the first start.',
  }),
  masterKeyNew: setting({
    env: 'PINFOLD_MASTER_KEY_NEW',
    parse: masterKey,
    default: '',
    doc: 'The key that `pinfold keys rotate-master` puts in the place of `PINFOLD_MASTER_KEY`. With both the server takes the one that fits.',
  }),
  ...blobSettings,
  sparse: setting({
    env: 'PINFOLD_SPARSE',
    parse: oneOf('off', 'indexes', 'all'),
    default: 'off',
    doc: 'Which manifests may be pushed although content that they list is missing: none (`off`), `indexes`, or `all`.',
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
  ledgerProofs: setting({
    env: 'PINFOLD_LEDGER_PROOFS',
    parse: oneOf('members', 'public', 'off'),
    default: 'members',
    doc: 'Who may read the logs that [prove the ledger](reference/ledger-proofs.md): `members`, who may list the tags of the organisation, or everybody (`public`). With `off` nothing is signed or served; what happens meanwhile is added once it is on.',
  }),
  ledgerWitnesses: setting({
    env: 'PINFOLD_LEDGER_WITNESSES',
    parse: witnesses,
    default: '',
    doc: 'Who is asked once a minute to sign the heads of the logs of the ledger: `KEY URL` of each [witness](reference/ledger-proofs.md#witnesses), with commas. `PINFOLD_WITNESSES_PRIVATE` lists those at private addresses, and `http://` takes `PINFOLD_ALLOW_INSECURE_UPSTREAMS`.',
  }),
  witnessLogs: setting({
    env: 'PINFOLD_WITNESS_LOGS',
    parse: logKeys,
    default: '',
    doc: 'Keys of the logs of other servers, as their policies have them, with commas: this server [witnesses](reference/ledger-proofs.md#witnesses) those, at `/ledger/witness/add-checkpoint`.',
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
  quotaBytes: setting({
    env: 'PINFOLD_QUOTA_BYTES',
    parse: whole(0, Number.MAX_SAFE_INTEGER),
    default: '0',
    doc: 'How many bytes an organisation may store. This and the other quotas hold where an organisation has no limit of its own; `0` is none.',
  }),
  quotaRepositories: setting({
    env: 'PINFOLD_QUOTA_REPOSITORIES',
    parse: whole(0, 2 ** 31 - 1),
    default: '0',
    doc: 'How many repositories an organisation may have.',
  }),
  quotaGroups: setting({
    env: 'PINFOLD_QUOTA_GROUPS',
    parse: whole(0, 2 ** 31 - 1),
    default: '0',
    doc: 'How many folders an organisation may have.',
  }),
  quotaUploads: setting({
    env: 'PINFOLD_QUOTA_UPLOADS',
    parse: whole(0, 2 ** 31 - 1),
    default: '1000',
    doc: 'How many uploads an organisation may have open at once.',
  }),
  quotaUploadPieces: setting({
    env: 'PINFOLD_QUOTA_UPLOAD_PIECES',
    parse: whole(0, 2 ** 31 - 1),
    default: '10000',
    doc: 'How many pieces one upload may come in.',
  }),
  quotaSubscriptions: setting({
    env: 'PINFOLD_QUOTA_SUBSCRIPTIONS',
    parse: whole(0, 2 ** 31 - 1),
    default: '1000',
    doc: 'How many subscriptions to events an organisation may have. Each of its events is compared with them.',
  }),
  quotaSinkSubscriptions: setting({
    env: 'PINFOLD_QUOTA_SINK_SUBSCRIPTIONS',
    parse: whole(0, 2 ** 31 - 1),
    default: '100',
    doc: 'How many subscriptions of an organisation may send to one sink.',
  }),
  quotaPendingDeliveries: setting({
    env: 'PINFOLD_QUOTA_PENDING_DELIVERIES',
    parse: whole(0, 2 ** 31 - 1),
    default: '10000',
    doc: 'How many pending deliveries of an organization are stored: those that failed, replays and redeliveries. Each subscription may have 16 in any case.',
  }),
  peopleIssuers: setting({
    env: 'PINFOLD_PEOPLE_ISSUERS',
    parse: peopleProviders,
    default: '',
    doc: 'The providers that are trusted with people, as JSON: `[{"issuer": "https://…", "audience": "…"}]`. `audience` is the client id that their tokens must be meant for. With a `label` people can sign in with it: `name` is what the address of a sign-in calls it (made of the label by default), `secretFile` the file with the secret of the client, `scopes` what to ask for besides `openid`, such as `email profile`. Default: there is none.',
  }),
  openSignIn: setting({
    env: 'PINFOLD_OPEN_SIGN_IN',
    parse: onOff,
    default: 'off',
    doc: '`on` gives everybody an account who signs in with a provider of `PINFOLD_PEOPLE_ISSUERS`; otherwise a new person needs an invite.',
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
    doc: 'Methods that wait until all of these documents are accepted, and with them what does the same in another version or by a push; by full name, with commas, such as `pinfold.platform.registry.v2.ReposService/CreateRepo`. Default: none.',
  }),
  awsStsUrl: setting({
    env: 'PINFOLD_AWS_STS_URL',
    parse: baseUrl,
    default: 'https://sts.amazonaws.com',
    doc: 'Where AWS gives credentials, for checks of account associations, and tells who signed a request, for identities of AWS.',
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
  reflection: setting({
    env: 'PINFOLD_REFLECTION',
    parse: onOff,
    default: 'on',
    doc: '`off` removes gRPC server reflection.',
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
  registryEventsPerOrganization: setting({
    env: 'PINFOLD_REGISTRY_EVENTS_PER_ORGANIZATION',
    parse: whole(1, 10_000_000),
    default: '1000',
    doc: 'How many pulls of one organisation become events in a minute, and how many refused pushes. What is more is counted only.',
  }),
  signingAlgorithms: setting({
    env: 'PINFOLD_SIGNING_ALGORITHMS',
    parse: algorithms,
    default: 'ES256',
    doc: 'What tokens are signed with: `ES256`, `RS256`, or both with a comma. There are keys for each; the first signs our tokens and what is sent to sinks, and clouds get RS256 where it is listed. Receivers of events must accept RS256 before it is put first.',
  }),
  keyRotationDays: setting({
    env: 'PINFOLD_KEY_ROTATION_DAYS',
    parse: whole(3, 3650),
    default: '90',
    doc: 'After how many days tokens are signed with a new key. It is published a day before, the old one for two days after.',
  }),
  trustedProxies: setting({
    env: 'PINFOLD_TRUSTED_PROXIES',
    parse: networks,
    default: '',
    doc: 'Addresses and CIDR ranges, with commas, of proxies whose `X-Forwarded-For` says who the client is, and whose `X-Forwarded-Host` and `X-Forwarded-Proto` say what it calls us.',
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
  migrateAtStart: setting({
    env: 'PINFOLD_MIGRATE_AT_START',
    parse: onOff,
    default: 'off',
    doc: 'Whether a server that starts migrates a PostgreSQL database of an earlier version. Otherwise it does not start, and `pinfold migrate` does it. An embedded database is always migrated.',
  }),
  leaseMs: setting({
    env: 'PINFOLD_LEASE_MS',
    parse: whole(100, 600_000),
    default: '15000',
    doc: 'After how long without a sign of life a node counts as gone, and others take over what only one may do.',
  }),
  lameduckMs: setting({
    env: 'PINFOLD_LAMEDUCK_MS',
    parse: whole(0, 600_000),
    default: '0',
    doc: 'For how long after SIGTERM `/readyz` says 503 while everything is still served, so that a balancer stops sending before connections are refused. Then `PINFOLD_DRAIN_MS` begins.',
  }),
  drainMs: setting({
    env: 'PINFOLD_DRAIN_MS',
    parse: whole(0, 600_000),
    default: '10000',
    doc: 'How long requests in flight, and deliveries after them, may go on after SIGTERM.',
  }),
  ...edgeSettings,
  ...traceSettings,
  ...vulnerabilitySettings,
  ...compatSettings,
}

/** Settings of commands that call a server. The server ignores them. */
export const clientVariables: Record<string, string> = {
  PINFOLD_API: 'The URL of the server.',
  PINFOLD_IDENTITY: 'The uid of the identity to sign in as.',
  PINFOLD_ID_TOKEN: "The platform's token to sign in with, as in the `id_tokens` of GitLab.",
  PINFOLD_TOKEN: 'A token of the server to use instead of signing in.',
}

export type Config = { [K in keyof typeof settings]: ReturnType<(typeof settings)[K]['parse']> } & {
  /** Environment variables of AWS tools, for a bucket. */
  aws: Record<string, string>
}

/** Reads the settings. Throws one ConfigError that lists every invalid setting, with the name of its flag if that was used. */
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
  const known = [...Object.values(settings).map(({ env: variable }) => variable), ...Object.keys(clientVariables)]
  problems.push(...unknownSettings(Object.keys(env), known))
  config.aws = Object.fromEntries(Object.entries(env).filter(([name]) => name === 'HOME' || name.startsWith('AWS_')))
  const read = config as Config
  if (problems.length === 0 && read.database !== '' && read.masterKey === '') {
    problems.push('a database URL needs PINFOLD_MASTER_KEY, 32 bytes as base64 or hex')
  }
  if (problems.length === 0 && read.masterKeyNew !== '' && read.masterKey === '') {
    problems.push(
      'PINFOLD_MASTER_KEY_NEW is for a master key in PINFOLD_MASTER_KEY; the one in a file needs no setting',
    )
  }
  if (problems.length === 0 && read.termsMethods.length > 0 && read.termsDocuments.length === 0) {
    problems.push('PINFOLD_TERMS_METHODS needs PINFOLD_TERMS_DOCUMENTS, which say what is to be accepted')
  }
  if (problems.length === 0 && (read.tlsCert === '') !== (read.tlsKey === '')) {
    problems.push('PINFOLD_TLS_CERT and PINFOLD_TLS_KEY need each other')
  }
  if (problems.length === 0) problems.push(...redirectProblems(read))
  if (problems.length === 0 && !read.allowInsecureUpstreams) {
    const plain = read.ledgerWitnesses.find(({ url }) => url.startsWith('http:'))
    if (plain)
      problems.push(`PINFOLD_LEDGER_WITNESSES has ${plain.url}: http:// takes PINFOLD_ALLOW_INSECURE_UPSTREAMS`)
  }
  if (problems.length === 0 && read.tlsCert !== '' && read.url.startsWith('http:')) {
    problems.push('PINFOLD_URL must begin with https:// where PINFOLD_TLS_CERT is set')
  }
  if (problems.length === 0 && read.compatVendorDomain !== '' && read.compatVendor === '') {
    problems.push('PINFOLD_COMPAT_VENDOR_DOMAIN needs PINFOLD_COMPAT_VENDOR, whose domain it is')
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return read
}
