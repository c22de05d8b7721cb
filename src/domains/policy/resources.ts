import type { Resource } from '#lib/resource.ts'
import { gateExceptionType, gateType } from './gates/gates.model.ts'
import { pullRuleExceptionType, pullRuleType } from './pull-rules/pull-rules.model.ts'
import { retentionPlanType } from './retention/plans.model.ts'
import { holdType, quarantineType, retentionRuleType, tagRuleType } from './retention/retention.model.ts'

const contentRules = ['insert', 'update', 'delete'] as const
const ruleTable = { kinds: [], uid: 'none', groupDeletion: 'goes', clears: { contentRules } } as const

export const resources: readonly Resource[] = [
  {
    type: pullRuleType,
    table: 'pull_rules',
    kinds: [],
    uid: 'none',
    groupDeletion: 'goes',
    clears: { pullRules: ['insert', 'update', 'delete'] },
  },
  {
    type: pullRuleExceptionType,
    table: 'pull_rule_exceptions',
    kinds: [],
    uid: 'none',
    groupDeletion: 'goes',
    clears: { pullRules: ['insert', 'update', 'delete'] },
  },
  { ...ruleTable, type: retentionRuleType, table: 'retention_rules' },
  { ...ruleTable, type: tagRuleType, table: 'tag_rules' },
  { type: retentionPlanType, table: 'retention_plans', kinds: [], uid: 'none', groupDeletion: 'goes' },
  { ...ruleTable, type: holdType, table: 'holds', groupDeletion: 'released' },
  {
    ...ruleTable,
    type: quarantineType,
    table: 'quarantined',
    groupDeletion: 'released',
    clears: { contentRules, views: contentRules },
  },
  {
    type: gateType,
    table: 'gates',
    kinds: [],
    uid: 'none',
    groupDeletion: 'goes',
    clears: { gates: ['insert', 'update', 'delete'] },
  },
  {
    type: gateExceptionType,
    table: 'gate_exceptions',
    kinds: [],
    uid: 'none',
    groupDeletion: 'goes',
    clears: { gates: ['insert', 'update', 'delete'] },
  },
]
