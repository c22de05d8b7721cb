// Types of the application and of one request. Contains no code, so that all files may import it.

import type { DescMethod, Message, MessageShape } from '@bufbuild/protobuf'
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2'
import type { EventName } from '#gen/event-names.ts'
import type { Blobs } from './blobs/blobs.ts'
import type { By, Caller } from './caller.ts'
import type { AwsCallers } from './clouds/amazon-callers.ts'
import type { CloudAccount, CloudAnswer } from './clouds/cloud-account.ts'
import type { Config } from './config.ts'
import type { Skew } from './db/skew.ts'
import type { Db } from './db/sql.ts'
import type { AdvisoriesParts } from './domains/advisories/parts.ts'
import type { EventsParts } from './domains/events/parts.ts'
import type { IamParts } from './domains/iam/parts.ts'
import type { LedgerParts } from './domains/ledger/parts.ts'
import type { MirrorsParts } from './domains/mirrors/parts.ts'
import type { PolicyParts } from './domains/policy/parts.ts'
import type { RegistryParts } from './domains/registry/parts.ts'
import type { ScanningParts } from './domains/scanning/parts.ts'
import type { Hooks } from './hooks.ts'
import type { Keyring } from './issuer/keyring.ts'
import type { OutsideIssuers } from './issuer/outside-issuers.ts'
import type { ProviderDirectory } from './issuer/people/directory.ts'
import type { ScannerPull } from './issuer/scanner-token.ts'
import type { FailureLog } from './lib/batches/failure-log.ts'
import type { Budgets } from './lib/budgets/budgets.ts'
import type { ThreadTime } from './lib/budgets/thread-time.ts'
import type { Buffers } from './lib/buffers.ts'
import type { Version } from './lib/cause.ts'
import type { Sealer } from './lib/crypto/seal.ts'
import type { Logger } from './lib/log.ts'
import type { Vendor } from './lib/naming/vendor.ts'
import type { ClientRanges } from './lib/net/client-ranges.ts'
import type { Limits } from './lib/net/limits.ts'
import type { Outgoing } from './lib/net/outgoing.ts'
import type { Resource } from './lib/resource.ts'
import type { Metrics } from './metrics.ts'
import type { Tracer } from './tracing/tracer.ts'

/** Parts that a process opens before its domains. */
export type Ground = {
  config: Config
  /** Version of this release. */
  version: string
  /** Vendor whose names are accepted besides ours. Undefined if the settings name none. */
  vendor: Vendor | undefined
  log: Logger
  /** Log of repeated failures, such as those of requests while the database is unavailable. */
  failures: FailureLog
  metrics: Metrics
  db: Db
  /** Resources that the domains store. */
  resources: readonly Resource[]
  /** Encrypts with the master key: secrets in rows, and page tokens. */
  sealer: Sealer
  /** Signing keys of the issuer, current and recent. */
  keyring: Keyring
  /** Counts the bytes of short-lived buffers, and triggers garbage collections from time to time. */
  buffers: Buffers
  /** Store of the content of blobs. */
  blobs: Blobs
  /** Clients that are redirected to the blob store instead of reading through the server. */
  blobRedirects: ClientRanges
  /** Records the duration of parts of requests, if the settings name a collector. */
  tracer: Tracer
  /** Rate limits of endpoints without a token. */
  limits: Limits
  /** Limits on the main-thread time of each caller while others wait. */
  budgets: Budgets
  /** Request that is using the main thread. */
  threadTime: ThreadTime
  /** The only client for servers that users have named. */
  outgoing: Outgoing
  /** Creates a token with which a scanner can only pull from one repository, for ten minutes. */
  scannerToken(pull: ScannerPull): Promise<string>
  /** Discovery documents of sign-in providers. */
  providerDirectory: ProviderDirectory
  /** Keys of the issuers that identities trust. */
  outsideIssuers: OutsideIssuers
  /** Tries to get credentials from a cloud for a group. `issuer` is the URL of the server. */
  checkCloud(issuer: string, group: string, account: CloudAccount): Promise<CloudAnswer>
  /** Finds the signer of an AWS request. */
  awsCallers: AwsCallers
  /** Events of the contract, and their bodies. */
  eventTable: EventTable
  /** Time of the database, since servers read each other's timestamps. */
  clock: () => Date
  skew: Skew
  fleet: Fleet
  /** Milliseconds of a monotonic clock. */
  monotonic: () => number
}

/** Caches, signals and clients of all domains. Each domain that has some is one line here. */
export type Parts = IamParts &
  RegistryParts &
  EventsParts &
  LedgerParts &
  AdvisoriesParts &
  ScanningParts &
  PolicyParts &
  MirrorsParts

/** The application. It lives as long as the process. */
export type App = Ground &
  Parts & {
    /** Functions of higher domains that run when lower domains change data. */
    hooks: Hooks
  }

/** Servers that share the database. If `isFirst` is true, this server reports for all of them. */
export type Fleet = { nodes: number; isFirst: boolean }

/** Work for a caller: a call, a request at the registry, a run of a background job or an import. */
export type Work = By & { app: App }

/** One call of the API. Service functions take it, or its `Work`, as their first argument. */
export type Call = Work & {
  method: Method
  /** Disjoint groups on which the caller holds all capabilities of an unscoped method. Empty for other methods. */
  reach: readonly string[]
  /** Time of the cause. */
  now: string
  /** Bearer credential of a method that is not authenticated before, such as the exchange. */
  credential: string | undefined
  /** URL of the server for clients. */
  url: string
  /** Vendor whose names the client uses. Undefined for our names. */
  vendor: Vendor | undefined
  signal: AbortSignal
  /** Calls `listener` once the response was made, or if there is none. */
  whenOver(listener: () => void): void
}

/** A method of the contract, built once from the descriptors (`api/methods.ts`). */
export type Method = {
  /** Name in the contract: `GetRepo`. */
  name: string
  /** `pinfold.platform.registry.v2.ReposService/GetRepo`. */
  fullName: string
  desc: DescMethod
  access: Access
  version: Version
}

/** `scope` is the path of the request field with the group on which the caller must hold the capabilities (numbers). */
export type Access =
  | { mode: 'open' }
  | { mode: 'scoped'; capabilities: readonly number[]; scope: readonly string[] }
  | { mode: 'unscoped'; capabilities: readonly number[] }
  /** The caller must hold the capabilities everywhere, as only the operator does. */
  | { mode: 'everywhere'; capabilities: readonly number[] }

/** An event for one kind of resource, in one version. */
export type EventRow = {
  /** CloudEvents type. */
  type: string
  audience: 'CUSTOMER' | 'INTERNAL'
  /** Extension attributes that the contract declares. */
  extensions: readonly string[]
  /** Path below the API's URL, such as `/registry/v2/repos`. Empty if each event has its own source. */
  source: string
  /** Full name of the message in its body. */
  bodyType: string
  /** JSON of the body. */
  render(value: unknown): string
}

/** Events of the contract, built once from the descriptors (`api/event-table.ts`). */
export type EventTable = {
  /** Row of the event for the called version, or for the newest one without a version. Throws if there is none. */
  find(name: EventName, version: Version, kind: string): EventRow
  /** Full names of the methods that write the event. */
  methods(name: EventName): readonly string[]
  /** JSON of a body of this type with a vendor's member names. */
  bodyUnder(token: string, bodyType: string, body: string): string
  /** The method of this full name, and its counterparts in other versions. */
  inEveryVersion(method: string): readonly string[]
}

export type Handler = (call: Call, request: never) => Promise<Message>

/** A call that may last for hours, during which the caller's rights may change. */
export type StreamCall = Call & {
  /** Present state of the caller. Throws UNAUTHENTICATED after the token has expired or was revoked. */
  callerNow(): Promise<Caller>
}

/** Yields messages until the signal of the call is aborted, no faster than the client reads them. */
export type StreamHandler = (call: StreamCall, request: never) => AsyncIterable<Message>

/** Handlers of one service, by the method's name in lower camel case. A missing one responds UNIMPLEMENTED. */
export type Handlers<S extends GenService<GenServiceMethods>> = {
  [K in keyof S['method']]?: S['method'][K]['methodKind'] extends 'server_streaming'
    ? (
        call: StreamCall,
        request: MessageShape<S['method'][K]['input']>,
      ) => AsyncIterable<MessageShape<S['method'][K]['output']>>
    : (call: Call, request: MessageShape<S['method'][K]['input']>) => Promise<MessageShape<S['method'][K]['output']>>
}

/** Service that a domain adds to the server, with the handlers of the domain. */
export type Service = { desc: GenService<GenServiceMethods>; handlers: Record<string, Handler | StreamHandler> }
