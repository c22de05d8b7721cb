import type { Handlers } from '#app.ts'
import { toCoverage, toGap } from '#domains/scanning/reports/coverage.control.ts'
import type { CheckedPolicy, PolicyChecksService } from '#gen/pinfold/control/scanning/v1/policy_checks_pb.ts'
import { PolicyResult_Mode, PolicyResult_Result } from '#gen/pinfold/registry/events_pb.ts'
import { snakeCase } from '#lib/fields.ts'
import * as service from './policy-checks.service.ts'

export const policyChecks: Handlers<typeof PolicyChecksService> = {
  async checkPolicies(call, { uid, tag, digest }) {
    const checked = await service.checkPolicies(call, uid, { tag, digest })
    return {
      $typeName: 'pinfold.control.scanning.v1.CheckPoliciesResponse',
      results: checked.outcomes.map((outcome) => toMessage(checked.digest, outcome)),
    }
  },
}

function toMessage(digest: string, outcome: service.ExplainedOutcome): CheckedPolicy {
  const { gate, reason, count, pending, exception, coverage, gaps } = outcome
  return {
    $typeName: 'pinfold.control.scanning.v1.CheckedPolicy',
    policyId: gate.uid,
    policyName: gate.name,
    mode: gate.enforced ? PolicyResult_Mode.POLICY_MODE_ENFORCED : PolicyResult_Mode.POLICY_MODE_DRY_RUN,
    result: resultOf(outcome),
    bindingId: gate.scopeUid,
    parameters: {
      digest: text(digest),
      kind: text(snakeCase(gate.kind)),
      reason: text(reason),
      ...(gate.kind === 'vulnerabilities' && { count: value({ case: 'numberValue', value: count }) }),
      ...(pending && { pending: value({ case: 'boolValue', value: true }) }),
      ...(exception !== '' && { exception: text(exception) }),
    },
    ...(coverage && { coverage: toCoverage(coverage) }),
    gaps: gaps.map(toGap),
  }
}

function resultOf({ denied, failed }: service.ExplainedOutcome): PolicyResult_Result {
  if (failed) return PolicyResult_Result.ERROR
  return denied ? PolicyResult_Result.DENIED : PolicyResult_Result.ALLOWED
}

type Value = CheckedPolicy['parameters'][string]

const value = (kind: Value['kind']): Value => ({ $typeName: 'google.protobuf.Value', kind })
const text = (given: string): Value => value({ case: 'stringValue', value: given })
