// The types of the application and of one request; no code, so that anyone may import them.

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
  /** Which release this is. */
  version: string
  /** Whose names count beside ours, if the settings name somebody. */
  vendor: Vendor | undefined
  log: Logger
  /** Failures that repeat, as those of requests while the database is away. */
  failures: FailureLog
  metrics: Metrics
  db: Db
  /** What the domains keep. */
  resources: readonly Resource[]
  /** Encrypts under the master key: secrets in rows, page tokens. */
  sealer: Sealer
  /** The issuer's signing keys, current and recent. */
  keyring: Keyring
  /** Has the buffers of large bodies collected. */
  buffers: Buffers
  /** Where the content of blobs is. */
  blobs: Blobs
  /** Which clients read blobs from where they are, and not through us. */
  blobRedirects: ClientRanges
  /** Records how long parts of requests take, where the settings name a collector. */
  tracer: Tracer
  /** How often the doors that need no token of ours may be knocked at. */
  limits: Limits
  /** How much of the main thread a caller may use while others wait. */
  budgets: Budgets
  /** The request that uses the main thread. */
  threadTime: ThreadTime
  /** The one way to ask a server that somebody else named. */
  outgoing: Outgoing
  /** A token with which a scanner pulls from one repo for ten minutes, and does nothing else. */
  scannerToken(pull: ScannerPull): Promise<string>
  /** What the providers that people sign in with say of themselves. */
  providerDirectory: ProviderDirectory
  /** The keys of the issuers whose tokens identities trust. */
  outsideIssuers: OutsideIssuers
  /** Tries to get credentials from a cloud for a group; `issuer` is what clients call us. */
  checkCloud(issuer: string, group: string, account: CloudAccount): Promise<CloudAnswer>
  /** Who signed a request to AWS. */
  awsCallers: AwsCallers
  /** Which events there are, and what their bodies look like. */
  eventTable: EventTable
  /** The time of the database: what one server writes, another one reads. */
  clock: () => Date
  skew: Skew
  fleet: Fleet
  /** Milliseconds of a clock that never steps. */
  monotonic: () => number
}

/** Caches, signals and clients of all domains. A domain that has some is one line here. */
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
    /** Functions of higher domains that run when lower ones change something. */
    hooks: Hooks
  }

/** What this server knows of those that share its database. `isFirst`: it speaks for all of them. */
export type Fleet = { nodes: number; isFirst: boolean }

/** Work in the name of a caller: a call, a request at the registry, a run of a background job or an import. */
export type Work = By & { app: App }

/** One call of the API. Service functions take it first, or the `Work` that it is. */
export type Call = Work & {
  method: Method
  /** Disjoint places at and below which the caller holds all that an unscoped method requires; empty for other methods. */
  reach: readonly string[]
  /** The time of the cause. */
  now: string
  /** The bearer credential of a method that looks at none itself, such as the exchange. */
  credential: string | undefined
  /** What clients call us. */
  url: string
  /** Whose names the client uses, where they are not ours. */
  vendor: Vendor | undefined
  signal: AbortSignal
  /** Calls `listener` once the answer was made, or there is to be none. */
  whenOver(listener: () => void): void
}

/** What the contract says about one method; built once from the descriptors (`api/methods.ts`). */
export type Method = {
  /** As the contract spells it: `GetRepo`. */
  name: string
  /** `pinfold.platform.registry.v2.ReposService/GetRepo`. */
  fullName: string
  desc: DescMethod
  access: Access
  version: Version
}

/** `scope` is the path of the request field that names the place where the capabilities (numbers) must be held. */
export type Access =
  | { mode: 'open' }
  | { mode: 'scoped'; capabilities: readonly number[]; scope: readonly string[] }
  | { mode: 'unscoped'; capabilities: readonly number[] }
  /** The capabilities must be held everywhere, as only the operator holds them. */
  | { mode: 'everywhere'; capabilities: readonly number[] }

/** An event as it is written for one kind of resource, in one version. */
export type EventRow = {
  /** The CloudEvents type. */
  type: string
  audience: 'CUSTOMER' | 'INTERNAL'
  /** The extension attributes that the contract declares. */
  extensions: readonly string[]
  /** A path below the API's URL, such as `/registry/v2/repos`; empty where each event has a source of its own. */
  source: string
  /** The full name of the message in its body. */
  bodyType: string
  /** The JSON of the body. */
  render(value: unknown): string
}

/** The events of the contract, built once from the descriptors (`api/event-table.ts`). */
export type EventTable = {
  /** The row for whoever called this version; the newest where none was called. Throws when there is none. */
  find(name: EventName, version: Version, kind: string): EventRow
  /** The full names of the methods that write it. */
  methods(name: EventName): readonly string[]
  /** The JSON of a body of this type with the names of members that a vendor's clients know. */
  bodyUnder(token: string, bodyType: string, body: string): string
  /** The method of this full name, and those that do the same in another version. */
  inEveryVersion(method: string): readonly string[]
}

export type Handler = (call: Call, request: never) => Promise<Message>

/** A call that may last for hours, so that what its caller may do can change meanwhile. */
export type StreamCall = Call & {
  /** The caller as they are now. Throws UNAUTHENTICATED once the token is over. */
  callerNow(): Promise<Caller>
}

/** Yields messages as they come, no faster than the client takes them, until the signal of the call ends it. */
export type StreamHandler = (call: StreamCall, request: never) => AsyncIterable<Message>

/** The handlers of one service, by the method's name in lower camel case. A missing one answers UNIMPLEMENTED. */
export type Handlers<S extends GenService<GenServiceMethods>> = {
  [K in keyof S['method']]?: S['method'][K]['methodKind'] extends 'server_streaming'
    ? (
        call: StreamCall,
        request: MessageShape<S['method'][K]['input']>,
      ) => AsyncIterable<MessageShape<S['method'][K]['output']>>
    : (call: Call, request: MessageShape<S['method'][K]['input']>) => Promise<MessageShape<S['method'][K]['output']>>
}

/** What a domain adds to the server: services, each with the handlers it has. */
export type Service = { desc: GenService<GenServiceMethods>; handlers: Record<string, Handler | StreamHandler> }
