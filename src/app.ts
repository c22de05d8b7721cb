// Types of the application and of one request. Contains no code, so all files may import it.

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
import type { SecretCipher } from './lib/crypto/secret-cipher.ts'
import type { Logger } from './lib/log.ts'
import type { Vendor } from './lib/naming/vendor.ts'
import type { ClientRanges } from './lib/net/client-ranges.ts'
import type { Dns } from './lib/net/dns.ts'
import type { Limits } from './lib/net/limits.ts'
import type { Outgoing } from './lib/net/outgoing.ts'
import type { Resource } from './lib/resource.ts'
import type { Metrics } from './metrics.ts'
import type { Tracer } from './tracing/tracer.ts'

/** Parts of the application that do not belong to a domain. They are opened before the domains. */
export type Ground = {
  config: Config
  /** Version of this build. */
  version: string
  /** Vendor whose names the API accepts besides ours. Undefined if no setting names a vendor. */
  vendor: Vendor | undefined
  log: Logger
  /** Log for repeated failures, such as those of all requests while the database is unavailable. */
  failures: FailureLog
  metrics: Metrics
  db: Db
  /** Tables of all domains, with their properties. */
  resources: readonly Resource[]
  /** Encrypts secrets in rows, and page tokens, with keys from the master key. */
  cipher: SecretCipher
  /** Signing keys of the issuer: the current one, and earlier ones whose tokens may still be valid. */
  keyring: Keyring
  /** Counts the bytes of short-lived buffers, and starts small garbage collections. */
  buffers: Buffers
  /** Store of the content of blobs. */
  blobs: Blobs
  /** Decides which clients are redirected to the bucket instead of reading through the server. */
  blobRedirects: ClientRanges
  /** Records traces of requests, if a setting names a collector. */
  tracer: Tracer
  /** Rate limits on requests without a valid token. */
  limits: Limits
  /** Limits on the main-thread time of callers while others wait. */
  budgets: Budgets
  /** Measures which request uses the main thread. */
  threadTime: ThreadTime
  /** Client for servers that users have named. No other client may send requests to them. */
  outgoing: Outgoing
  /** Looks up DNS records that verify domains. Tests replace it. */
  dns: Dns
  /** Creates a token for a scanner. The token can only pull from one repository, and is valid for ten minutes. */
  scannerToken(pull: ScannerPull): Promise<string>
  /** Discovery documents of sign-in providers, cached. */
  providerDirectory: ProviderDirectory
  /** Public keys of the issuers that identities trust, cached. */
  outsideIssuers: OutsideIssuers
  /** Checks that a group's cloud account gives us credentials. `issuer` is the URL of the server. */
  checkCloud(issuer: string, group: string, account: CloudAccount): Promise<CloudAnswer>
  /** Finds the AWS identity that has signed a request. */
  awsCallers: AwsCallers
  /** Event types of the contract, and their bodies. */
  eventTable: EventTable
  /** Time of the database. Servers use it because they compare each other's timestamps. */
  clock: () => Date
  skew: Skew
  fleet: Fleet
  /** Milliseconds of a clock that never goes back. */
  monotonic: () => number
}

/** Caches, signals and clients of the domains. Each domain with such parts has one line here. */
export type Parts = IamParts &
  RegistryParts &
  EventsParts &
  LedgerParts &
  AdvisoriesParts &
  ScanningParts &
  PolicyParts &
  MirrorsParts

/** The application. One process has one. */
export type App = Ground &
  Parts & {
    /** Hooks: functions of higher domains that run when lower domains change data. */
    hooks: Hooks
  }

/** Servers that share the database. If `isFirst` is true, this server reports figures for all of them. */
export type Fleet = { nodes: number; isFirst: boolean }

/** Work for a caller: an API call, a registry request, a run of a background job, or an import. */
export type Work = By & { app: App }

/** One API call. Service functions take a Call, or only its Work, as their first argument. */
export type Call = Work & {
  method: Method
  /**
   * Groups on which the caller holds all capabilities of an unscoped method. No group contains another one. Empty for other
   * methods.
   */
  reach: readonly string[]
  /** Time of the call, also recorded as the time of its changes. */
  now: string
  /** Bearer credential that the handler itself checks, such as in an exchange. Other methods are authenticated before. */
  credential: string | undefined
  /** URL of the server for clients. */
  url: string
  /** Vendor whose names the client uses. Undefined for our names. */
  vendor: Vendor | undefined
  signal: AbortSignal
  /** Calls `listener` when the call has ended, with or without a response. */
  whenOver(listener: () => void): void
}

/** Method of the contract, built once from the descriptors (`api/methods.ts`). */
export type Method = {
  /** Name in the contract, such as `GetRepo`. */
  name: string
  /** Full name, such as `pinfold.platform.registry.v2.ReposService/GetRepo`. */
  fullName: string
  desc: DescMethod
  access: Access
  version: Version
}

/** `scope` is the path of the request field with the uid at which the caller must hold the capabilities (numbers). */
export type Access =
  | { mode: 'open' }
  | { mode: 'scoped'; capabilities: readonly number[]; scope: readonly string[] }
  | { mode: 'unscoped'; capabilities: readonly number[] }
  /** The caller must hold the capabilities on all groups, which only the operator does. */
  | { mode: 'everywhere'; capabilities: readonly number[] }

/** Event type for one kind of resource, in one version. */
export type EventRow = {
  /** CloudEvents type. */
  type: string
  audience: 'CUSTOMER' | 'INTERNAL'
  /** Extension attributes that the contract declares. */
  extensions: readonly string[]
  /**
   * Source of the event: the path below the API's URL, such as `/registry/v2/repos`. Empty if each event has a source of its own.
   */
  source: string
  /** Full name of the message in its body. */
  bodyType: string
  /** Converts a body to JSON. */
  render(value: unknown): string
}

/** Event types of the contract, built once from the descriptors (`api/event-table.ts`). */
export type EventTable = {
  /** Event type for the called version. Without a version, the type of the newest one. Throws if there is none. */
  find(name: EventName, version: Version, kind: string): EventRow
  /** Full names of the methods that send the event. */
  methods(name: EventName): readonly string[]
  /** JSON of an event body, with a vendor's member names. */
  bodyUnder(token: string, bodyType: string, body: string): string
  /** Full names of this method and of the same method in other versions. */
  inEveryVersion(method: string): readonly string[]
}

export type Handler = (call: Call, request: never) => Promise<Message>

/** Call of a method with a stream. It may last for hours, during which the caller's permissions may change. */
export type StreamCall = Call & {
  /** Reads the caller again. Throws UNAUTHENTICATED once the token has expired or was revoked. */
  callerNow(): Promise<Caller>
}

/** Handler of a stream. Yields messages until the signal of the call is aborted, no faster than the client reads them. */
export type StreamHandler = (call: StreamCall, request: never) => AsyncIterable<Message>

/** Handlers of one service, by method name in lower camel case. A method without a handler responds UNIMPLEMENTED. */
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
