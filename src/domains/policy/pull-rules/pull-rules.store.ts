import { exceptionTable, ruleTable } from '#domains/rules/rules.store.ts'
import type { Age } from '../views/views.model.ts'
import type { PullRule } from './pull-rules.model.ts'

type Row = Omit<PullRule, 'age'> & { ageMs: number; holdMs: number; countFrom: Age['countFrom'] }

export const pullRuleTable = ruleTable<PullRule>({
  table: 'pull_rules',
  members: ['name', 'tags', 'exceptTags', 'identities', 'belowGroup', 'ageMs', 'holdMs', 'countFrom', 'mode'],
  json: ['tags', 'exceptTags', 'identities'],
  toRow: ({ age, ...rule }): Row => ({ ...rule, ageMs: age.ms, holdMs: age.hold, countFrom: age.countFrom }),
  fromRow: ({ ageMs, holdMs, countFrom, ...row }: Row) => ({ ...row, age: { ms: ageMs, hold: holdMs, countFrom } }),
})

export const pullRuleExceptionTable = exceptionTable('pull_rule_exceptions')
