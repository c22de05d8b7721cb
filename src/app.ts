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
import type { RefusalLog } from './domains/events/refusals/refusal-log.ts'
import type { Feed } from './domains/events/stream/stream.model.ts'
import type { GrantCache } from './domains/iam/access/grants.model.ts'
import type { LastSeen } from './domains/iam/identities/last-seen.ts'
import type { CachedPushTokens } from './domains/iam/push-tokens/push-tokens.model.ts'
import type { Repeats } from './domains/iam/repeats/repeats.ts'
import type { CachedSessions } from './domains/iam/sessions/sessions.model.ts'
import type { TermsGate } from './domains/iam/terms/terms-gate.ts'
import type { CheckpointGuard } from './domains/ledger/proofs/checkpoint-guard.ts'
import type { Sequencing } from './domains/ledger/proofs/sequencing.ts'
import type { TileCache } from './domains/ledger/proofs/tile-cache.ts'
import type { Witnessing } from './domains/ledger/proofs/witnessing.ts'
import type { RegistryEvents } from './domains/outbox/registry-events.model.ts'
import type { GateCache } from './domains/policy/gates/gates.model.ts'
import type { PullRuleCache } from './domains/policy/pull-rules/pull-rules.model.ts'
import type { LawCache } from './domains/policy/retention/law-cache.ts'
import type { ViewCache } from './domains/policy/views/view-cache.ts'
import type { ManifestCache } from './domains/registry/manifests/manifest-cache.ts'
import type { PathCache } from './domains/registry/repos/repos.model.ts'
import type { TagCache } from './domains/registry/tags/tag-cache.ts'
import type { DigestUsage } from './domains/registry/usage/digest-usage.ts'
import type { Hooks } from './hooks.ts'
import type { Keyring } from './issuer/keyring.ts'
import type { OutsideIssuers } from './issuer/outside-issuers.ts'
import type { ProviderDirectory } from './issuer/people/directory.ts'
import type { ScannerPull } from './issuer/scanner-token.ts'
import type { Budgets } from './lib/budgets/budgets.ts'
import type { ThreadTime } from './lib/budgets/thread-time.ts'
import type { Buffers } from './lib/buffers.ts'
import type { Lapsing } from './lib/caches/lapsing.ts'
import type { Remembered } from './lib/caches/remembered.ts'
import type { Version } from './lib/cause.ts'
import type { Sealer } from './lib/crypto/seal.ts'
import type { Logger } from './lib/log.ts'
import type { Vendor } from './lib/naming/vendor.ts'
import type { ClientRanges } from './lib/net/client-ranges.ts'
import type { Limits } from './lib/net/limits.ts'
import type { Outgoing } from './lib/net/outgoing.ts'
import type { SinkClient } from './lib/net/sink-client.ts'
import type { FailureLog } from './lib/noted/failure-log.ts'
import type { RegistryClient } from './lib/registries/registry-client.ts'
import type { Resource } from './lib/resource.ts'
import type { Signal } from './lib/signal.ts'
import type { Memory } from './lib/turns/memory.ts'
import type { ReadTurns } from './lib/turns/read-turns.ts'
import type { Metrics } from './metrics.ts'
import type { Tracer } from './tracing/tracer.ts'

/** What lives as long as the process. */
export type App = {
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
  /** What higher domains do when lower ones change something. */
  hooks: Hooks
  /** Encrypts under the master key: secrets in rows, page tokens. */
  sealer: Sealer
  /** The issuer's signing keys, current and recent. */
  keyring: Keyring
  /** Who is bound to what, at most half a second old. */
  grants: GrantCache
  /** Which sessions of people have not been ended, at most half a second old. */
  sessions: CachedSessions
  /** Which push tokens are good, at most half a second old. */
  pushTokens: CachedPushTokens
  lastSeen: LastSeen
  /** Requests that callers have named, so that none is carried out twice. */
  repeats: Repeats
  /** Has the buffers of large bodies collected. */
  buffers: Buffers
  /** Where the content of blobs is. */
  blobs: Blobs
  /** Which clients read blobs from where they are, and not through us. */
  blobRedirects: ClientRanges
  /** Bytes of uploads on their way to this server, by organisation, where it has a quota. */
  incoming: Map<string, number>
  /** The last request of this server to close an upload, by the upload; it never rejects. */
  closing: Map<string, Promise<void>>
  /** `asked`: a collection of blobs waits to be run. `moved`: one has got further, or has ended. */
  collections: { asked: Signal; moved: Signal }
  /** A repo was deleted whose tags and manifests are still to go. */
  removals: Signal
  /** A plan of what rules let go is to be made, or applied. */
  retention: Signal
  /** Tags that were pulled lately. */
  tags: TagCache
  /** What tags stand for at an age, of those that were pulled so lately. */
  views: ViewCache
  /** Manifests that were read lately. */
  manifests: ManifestCache
  /** Pulls, and pushes that were refused, on their way to the outbox. */
  registryEvents: RegistryEvents
  /** What the registry refuses, on its way to the table. */
  refusals: RefusalLog
  /** Who pulls what, on its way to the table. */
  usage: DigestUsage
  /**
   * `pushed`: there is something to read; `read`: what an image contains is known, or that it cannot be; `turns`: whose is next.
   * `full`: organisations whose images are left alone for now, since they store more than they may.
   */
  images: { pushed: Signal; read: Signal; turns: ReadTurns; full: Lapsing<true> }
  /**
   * `reported`: a report of another scanner waits to be read. `scans`: there is an image to have scanned. `reading`: bytes of reports that are held in memory for answers.
   * `turns`: whose report is read next.
   */
  scanning: { reported: Signal; scans: Signal; reading: Memory; turns: ReadTurns }
  /**
   * `due`: an upstream is to be looked at before it would be. `fetches`: there is content to bring. `histories`: there is a tag whose past is to be asked for. `flights`: what pulls bring from upstreams just now. `silent`:
   * tags that upstreams need not be asked for again yet, with what to say of each; empty where it is not there.
   */
  follows: {
    due: Signal
    fetches: Signal
    histories: Signal
    flights: Map<string, Promise<unknown>>
    silent: Lapsing<string>
  }
  /** The registries elsewhere that repos follow. */
  upstreams: RegistryClient
  /** Records how long parts of requests take, where the settings name a collector. */
  tracer: Tracer
  /** Which repo a path in the registry stands for, at most half a second old. */
  paths: PathCache
  /** How old what is pulled has to be, at most half a second old. */
  pullRules: PullRuleCache
  /** What has to be so of what is pulled, at most half a second old, and what was found out lately. */
  gates: GateCache
  /** What is kept, and what may not be moved or pulled, at most half a second old. */
  laws: LawCache
  /** Totals of searches that had to be counted one by one. */
  searchTotals: Remembered<number>
  /** How often the doors that need no token of ours may be knocked at. */
  limits: Limits
  /** How much of the main thread a caller may use while others wait. */
  budgets: Budgets
  /** The request that uses the main thread. */
  threadTime: ThreadTime
  /** The one way to ask a server that somebody else named. */
  outgoing: Outgoing
  /** The same for the sources of vulnerabilities, which the settings name. */
  toSources: Outgoing
  /** The same for the witnesses of the ledger, which the settings name. */
  toWitnesses: Outgoing
  /** The same for the scanners that the operator has set up. */
  toScanners: Outgoing
  /** A token with which a scanner pulls from one repo for ten minutes, and does nothing else. */
  scannerToken(pull: ScannerPull): Promise<string>
  /** What the providers that people sign in with say of themselves. */
  providerDirectory: ProviderDirectory
  /** The keys of the issuers whose tokens identities trust. */
  outsideIssuers: OutsideIssuers
  /** Identities with a logged claim that was too long for their patterns. */
  tooLongClaims: Lapsing<true>
  /** Tries to get credentials from a cloud for a group; `issuer` is what clients call us. */
  checkCloud(issuer: string, group: string, account: CloudAccount): Promise<CloudAnswer>
  /** Who signed a request to AWS. */
  awsCallers: AwsCallers
  /** Which methods wait until an organisation has accepted the terms. */
  terms: TermsGate
  /**
   * `written`: an event is in the outbox, or will be with the next commit. `routed`: events have got their position.
   * `queued`: deliveries were added or taken away by other means than routing.
   */
  events: { written: Signal; routed: Signal; queued: Signal }
  /** Which events there are, and what their bodies look like. */
  eventTable: EventTable
  /** The newest events, for whoever follows them. */
  feed: Feed
  /** Posts to addresses that subscribers have named. */
  sinks: SinkClient
  /** The time of the database: what one server writes, another one reads. */
  clock: () => Date
  /** Whom this process has asked what they have seen of the logs of the ledger. */
  witnessing: Witnessing
  /** Whose rows of the ledger are logged next. */
  sequencing: Sequencing
  /** The stored checkpoints of the logs that this process knows, and for how many logs signing has stopped. */
  checkpointGuard: CheckpointGuard
  /** Parts of the logs of the ledger that proofs were made of lately. */
  tiles: TileCache
  skew: Skew
  fleet: Fleet
}

/** What this server knows of those that share its database. `isFirst`: it speaks for all of them. */
export type Fleet = { nodes: number; isFirst: boolean }

/** In whose name something is done, within the application: a call, a request at the registry, a run of a worker or an import. */
export type Work = By & { app: App }

/** What lives as long as one call of the API. Service functions take it first, or the `Work` that it is. */
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
