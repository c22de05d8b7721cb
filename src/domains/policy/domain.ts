import type { Domain } from '#domain.ts'
import { DigestsService } from '#gen/pinfold/control/registry/v1/digests_pb.ts'
import { PullRulesService } from '#gen/pinfold/control/registry/v1/pull_rules_pb.ts'
import { RetentionService } from '#gen/pinfold/control/registry/v1/retention_pb.ts'
import { RetentionPlansService } from '#gen/pinfold/control/registry/v1/retention_plans_pb.ts'
import { ViewsService } from '#gen/pinfold/control/registry/v1/views_pb.ts'
import { GatesService } from '#gen/pinfold/control/scanning/v1/gates_pb.ts'
import { PolicyChecksService } from '#gen/pinfold/control/scanning/v1/policy_checks_pb.ts'
import { digests } from './digests/digests.control.ts'
import { gateEvents, gates } from './gates/gates.control.ts'
import { policyChecks } from './gates/policy-checks.control.ts'
import { openPolicy } from './open-parts.ts'
import { policyHooks } from './policy.hooks.ts'
import { pullRuleEvents, pullRules } from './pull-rules/pull-rules.control.ts'
import { views } from './pull-rules/resolve-tag.control.ts'
import { resources } from './resources.ts'
import { retentionPlanEvents, retentionPlans } from './retention/plans.control.ts'
import { sweepRetention } from './retention/plans.job.ts'
import { retention, retentionEvents } from './retention/retention.control.ts'

export const policy: Domain = {
  parts: openPolicy,
  services: [
    { desc: GatesService, handlers: gates },
    { desc: PolicyChecksService, handlers: policyChecks },
    { desc: RetentionService, handlers: retention },
    { desc: RetentionPlansService, handlers: retentionPlans },
    { desc: PullRulesService, handlers: pullRules },
    { desc: ViewsService, handlers: views },
    { desc: DigestsService, handlers: digests },
  ],
  eventBodies: [...gateEvents, ...retentionEvents, ...retentionPlanEvents, ...pullRuleEvents],
  resources,
  hooks: policyHooks,
  jobs: [sweepRetention],
}
