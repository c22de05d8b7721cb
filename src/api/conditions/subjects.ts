// Finds the resource that a method changes, and computes its entity tag. Both follow from the contract. A method changes the
// resource of a `Get…` method in the same service if it returns this resource or deletes it. Methods of version 1 use the
// resources of version 2.
import { hash } from 'node:crypto'
import { create, type DescMessage, type DescMethod, type Message } from '@bufbuild/protobuf'
import type { EventTable } from '#app.ts'
import { http } from '#gen/google/api/annotations_pb.ts'
import { DeliveriesService } from '#gen/pinfold/control/events/v1/deliveries_pb.ts'
import { FollowsService } from '#gen/pinfold/control/registry/v1/follows_pb.ts'
import { TagRestoresService } from '#gen/pinfold/control/registry/v1/tag_restores_pb.ts'
import { UpstreamsService } from '#gen/pinfold/control/registry/v1/upstreams_pb.ts'
import { GroupInvitesService } from '#gen/pinfold/iam/v2/group_invites_pb.ts'
import { IdentitiesService } from '#gen/pinfold/iam/v2/identities_pb.ts'
import { IdentityProvidersService } from '#gen/pinfold/iam/v2/identity_providers_pb.ts'
import { Registry } from '#gen/pinfold/registry/v1/registry_pb.ts'
import { TagsService } from '#gen/pinfold/registry/v2/tags_pb.ts'
import { Advisories } from '#gen/pinfold/vulnerabilities/v1/advisories_pb.ts'
import { AdvisoriesService } from '#gen/pinfold/vulnerabilities/v2/advisories_pb.ts'
import { camelCase } from '#lib/fields.ts'
import { type Endpoint, fullNameOf, scopeOf } from '../methods.ts'
import { optionOf } from '../option-of.ts'
import { jsonText } from '../transcoding/json-write.ts'

/** Description of how to read the resource that a method changes. */
export type Subject = {
  /** Method that reads the resource. */
  shows: Endpoint
  /** Message type of the resource. */
  resource: DescMessage
  /** Creates the request of `shows` from the request of the write. */
  askFor(request: Message): Message
  /** Takes the resource from the response of `shows`. Undefined if the resource does not exist yet. */
  take(answer: Message): Message | undefined
}

export type Subjects = {
  /** Resource that a method changes. Undefined for a method that does not change exactly one existing resource. */
  of(endpoint: Endpoint): Subject | undefined
  /** True if the response of the method is a resource with an entity tag. */
  isTagged(endpoint: Endpoint): boolean
  /**
   * Entity tag of a response, without quotes. Undefined if the response has none. `json` is the `jsonText` of the response, if it
   * is known already.
   */
  tagOf(endpoint: Endpoint, answer: Message, json?: string): string | undefined
}

/** Pairs of a write and a method that reads the same resource, if the contract shows this neither by types nor by names. */
const alike: readonly (readonly [DescMethod, DescMethod])[] = [
  [Registry.method.updateTag, TagsService.method.getTag],
  [Advisories.method.update, AdvisoriesService.method.getAdvisory],
  [Advisories.method.delete, AdvisoriesService.method.getAdvisory],
  [FollowsService.method.unfollowRepo, FollowsService.method.getFollow],
]

/** Methods that create a tag. If the tag exists, they update it. */
const tagMakers: readonly DescMethod[] = [
  TagsService.method.createTag,
  Registry.method.createTag,
  TagRestoresService.method.restoreTag,
]

/** True for methods that change nothing. They ignore preconditions and idempotency keys. */
export function isRead({ desc }: Pick<Endpoint, 'desc'>): boolean {
  return optionOf(desc, http).pattern.case === 'get'
}

export function buildSubjects(endpoints: readonly Endpoint[], { inEveryVersion }: EventTable): Subjects {
  const byName = new Map(endpoints.map((endpoint) => [endpoint.method.fullName, endpoint]))
  const subjects = new Map<string, Subject>()
  for (const endpoint of endpoints) {
    const subject = tagMakers.includes(endpoint.desc)
      ? tagByName(byName.get(fullNameOf(TagsService.method.listTags))!)
      : byUid(endpoint, shownBy(endpoint, endpoints, byName, inEveryVersion))
    if (subject) subjects.set(endpoint.method.fullName, subject)
  }
  const tagged = new Set([...subjects.values()].map(({ resource }) => resource))
  return {
    isTagged: ({ desc }) => tagged.has(desc.output),
    of: ({ method }) => subjects.get(method.fullName),
    tagOf: ({ desc: { output } }, answer, json) => (tagged.has(output) ? entityTagOf(output, answer, json) : undefined),
  }
}

/** Method that reads the resource which the write changes. Undefined if there is none. */
function shownBy(
  endpoint: Endpoint,
  endpoints: readonly Endpoint[],
  byName: ReadonlyMap<string, Endpoint>,
  inEveryVersion: EventTable['inEveryVersion'],
): Endpoint | undefined {
  const { method, desc } = endpoint
  if (method.access.mode !== 'scoped' || isRead(endpoint)) return undefined
  // The resource of these methods does not exist yet.
  if (/^(Create|Send)/.test(desc.name)) return undefined
  const like = alike.find(([one]) => one === desc)
  if (like) return byName.get(fullNameOf(like[1]))
  const own = findGetter(endpoint, endpoints)
  if (own || method.version !== 'v1') return own
  for (const name of inEveryVersion(method.fullName)) {
    const other = byName.get(name)
    const found = other && other.method.version === 'v2' && findGetter(other, endpoints)
    if (found) return found
  }
  return undefined
}

function findGetter({ desc }: Endpoint, endpoints: readonly Endpoint[]): Endpoint | undefined {
  const deleted = /^Delete(\w+)$/.exec(desc.name)?.[1]
  return endpoints.find(({ desc: other, handler }) => {
    if (other.parent !== desc.parent || !handler || !other.name.startsWith('Get')) return false
    if (other.input.fields.length !== 1) return false
    return other.output === desc.output || other.name === `Get${deleted}`
  })
}

function byUid(endpoint: Endpoint, shows: Endpoint | undefined): Subject | undefined {
  const { access } = endpoint.method
  if (!shows || access.mode !== 'scoped') return undefined
  const field = camelCase(shows.desc.input.fields[0]!.name)
  return {
    shows,
    resource: shows.desc.output,
    askFor: (request) => create(shows.desc.input, { [field]: scopeOf(request, access.scope) }),
    take: (answer) => answer,
  }
}

type TagMaking = { parent?: string; repoId?: string; repoUid?: string; tag?: { name: string } | string }

function tagByName(shows: Endpoint): Subject {
  return {
    shows,
    resource: TagsService.method.getTag.output,
    askFor(request) {
      const { parent, repoId, repoUid, tag } = request as TagMaking
      return create(TagsService.method.listTags.input, {
        uidp: { childrenOf: parent ?? repoId ?? repoUid ?? '' },
        name: typeof tag === 'string' ? tag : (tag?.name ?? ''),
        pageSize: 1,
        includeReferrers: true,
        includeDates: true,
        includeEpochs: true,
      })
    },
    take: (answer) => (answer as unknown as { tags: Message[] }).tags[0],
  }
}

/**
 * Fields that change without a write to the resource, and so are not part of its entity tag. They are states, data of other
 * sources, and values that only the first response contains. The SCIM settings of a provider are among them, since they have an
 * etag of their own.
 */
export const passing: ReadonlyMap<DescMessage, readonly string[]> = new Map<DescMessage, readonly string[]>([
  [AdvisoriesService.method.getAdvisory.output, ['severities']],
  [IdentitiesService.method.getIdentity.output, ['lastSeenTime']],
  [IdentityProvidersService.method.getIdentityProvider.output, ['scim']],
  [GroupInvitesService.method.getGroupInvite.output, ['code']],
  [
    DeliveriesService.method.getSubscriptionSettings.output,
    ['waiting', 'behindTime', 'givenUp', 'failures', 'blockedUntil', 'oldSecretExpireTime'],
  ],
  [UpstreamsService.method.getUpstream.output, ['problem']],
  [
    FollowsService.method.getFollow.output,
    [
      ...['state', 'problem', 'tagCount', 'stateTime', 'dueTime', 'waitingCount', 'fetchProblem'],
      ...['history', 'historyWaitingCount', 'historyProblem'],
    ],
  ],
])

function withoutPassing(desc: DescMessage, without: readonly string[], resource: Message): Message {
  const blank = create(desc) as unknown as Record<string, unknown>
  return { ...resource, ...Object.fromEntries(without.map((name) => [name, blank[name]])) }
}

/**
 * Entity tag of a resource: a hash of its JSON. So two changes in the same millisecond get different entity tags, and no column
 * is needed.
 */
function entityTagOf(desc: DescMessage, resource: Message, json?: string): string {
  const without = passing.get(desc)
  const shown = without ? jsonText(desc, withoutPassing(desc, without, resource)) : (json ?? jsonText(desc, resource))
  return hash('sha256', shown, 'base64url').slice(0, 22)
}

/** All entity tags of a resource. For an image tag, its digest is an entity tag too, as at the registry. */
export function entityTagsOf(desc: DescMessage, resource: Message): string[] {
  const { digest } = resource as unknown as { digest?: unknown }
  const more = desc === TagsService.method.getTag.output && typeof digest === 'string' && digest !== '' ? [digest] : []
  return [entityTagOf(desc, resource), ...more]
}
