import { ContentDeletedEventSchema } from '#gen/pinfold/control/registry/v1/events_pb.ts'
import {
  PolicyResult_Mode,
  PolicyResult_Result,
  PullEventSchema,
  PushEventSchema,
} from '#gen/pinfold/registry/events_pb.ts'
import { type EventBody, eventBody } from '#lib/events/event-body.ts'
import { maxUserAgent } from './audit.model.ts'
import {
  type Pulled,
  type Pushed,
  type Transfer,
  toContentDeletionResource,
  toPullResource,
  toPushResource,
} from './registry-events.model.ts'

export const registryEvents: readonly EventBody[] = [
  eventBody(PushEventSchema, toPushResource, (pushed) => ({
    $typeName: 'pinfold.registry.PushEvent' as const,
    ...common(pushed),
    ...(pushed.origin.repository === pushed.repo.path ? {} : { displayName: pushed.repo.path }),
    ...(pushed.what.previousDigest ? { tagPreviousDigest: pushed.what.previousDigest } : {}),
  })),
  eventBody(PullEventSchema, toPullResource, (pulled) => ({
    $typeName: 'pinfold.registry.PullEvent' as const,
    ...common(pulled),
    method: pulled.what.method,
    policyResults: (pulled.what.judged ?? []).map(({ uid, name, enforced, denied, failed }) => ({
      $typeName: 'pinfold.registry.PolicyResult' as const,
      policyId: uid,
      policyName: name,
      mode: enforced ? PolicyResult_Mode.POLICY_MODE_ENFORCED : PolicyResult_Mode.POLICY_MODE_DRY_RUN,
      result: failed ? PolicyResult_Result.ERROR : denied ? PolicyResult_Result.DENIED : PolicyResult_Result.ALLOWED,
    })),
    ...(pulled.origin.view === undefined ? {} : { view: pulled.origin.view }),
  })),
  eventBody(ContentDeletedEventSchema, toContentDeletionResource, ({ repo, type, digest }) => ({
    $typeName: 'pinfold.control.registry.v1.ContentDeletedEvent' as const,
    repository: repo.path,
    repoId: repo.uid,
    digest,
    type,
  })),
]

function common({ cause, repo, origin, what }: Transfer<Pushed | Pulled>) {
  const { tag, digest, type, error } = what
  return {
    repository: origin.repository,
    repoId: repo.uid,
    ...(origin.subdomain === '' ? {} : { subdomain: origin.subdomain }),
    ...(tag === undefined ? {} : { tag }),
    digest,
    type,
    // Date and time without a time zone, with six digits after the second. By convention, the time is UTC.
    when: `${cause.now.slice(0, -1)}000`,
    location: '',
    remoteAddress: cause.source,
    userAgent: cause.userAgent.slice(0, maxUserAgent).toWellFormed(),
    ...(error ? { error: { $typeName: 'pinfold.registry.Refusal' as const, ...error } } : {}),
  }
}
