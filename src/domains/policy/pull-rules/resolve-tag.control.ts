import type { Handlers } from '#app.ts'
import { PullRule_Mode } from '#gen/pinfold/control/registry/v1/pull_rules_pb.ts'
import type {
  DecidingRule,
  ResolveTagResponse,
  TagAssignment,
  ViewsService,
} from '#gen/pinfold/control/registry/v1/views_pb.ts'
import { timestamp, toIso } from '#lib/timestamp.ts'
import type { Chosen } from '../views/resolve.service.ts'
import type { Skipped } from '../views/views.model.ts'
import type { Explained } from './asked-tags.service.ts'
import { resolveFor } from './resolve-tag.service.ts'

export const views: Handlers<typeof ViewsService> = {
  async resolveTag(call, { repoUid, tag, at, minAge, hold, identityUid, pullRuleUid }): Promise<ResolveTagResponse> {
    const asked = { tag, at: at && toIso(at), minAge, hold, identityUid, pullRuleUid }
    const { resolved, skipped, next, rule } = await resolveFor(call, repoUid, asked)
    return {
      $typeName: 'pinfold.control.registry.v1.ResolveTagResponse',
      reason: 'why' in resolved ? resolved.why : '',
      ...(resolved.chosen && { chosen: assignmentOf(resolved.chosen) }),
      ...('time' in resolved && { deleteTime: timestamp(resolved.time) }),
      ...('latest' in resolved && { latest: assignmentOf(resolved.latest) }),
      skipped: skipped.map(skippedOf),
      ...(next && { next: skippedOf(next) }),
      ...(rule && { rule: ruleOf(rule) }),
    }
  },
}

function ruleOf({ uid, name, mode, refuses }: NonNullable<Explained['rule']>): DecidingRule {
  return { $typeName: 'pinfold.control.registry.v1.DecidingRule', uid, name, mode: PullRule_Mode[mode], refuses }
}

function assignmentOf({ digest, since, imported }: Chosen): TagAssignment {
  const $typeName = 'pinfold.control.registry.v1.TagAssignment' as const
  return { $typeName, digest, assignTime: timestamp(since), imported }
}

function skippedOf({ digest, time, reason, eligible }: Skipped) {
  return {
    $typeName: 'pinfold.control.registry.v1.SkippedAssignment' as const,
    ...{ digest, reason, assignTime: timestamp(time) },
    ...(eligible === undefined ? {} : { eligibleTime: timestamp(eligible) }),
  }
}
