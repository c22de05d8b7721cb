import assert from 'node:assert/strict'
import { test } from 'node:test'
import { storedPatternProblem } from './relationships.ts'

test('reports a stored pattern above the limits, with the maximum length of a claim or an issuer', () => {
  const old = 's.{0,600}'
  const lengthOf = (relationship: Parameters<typeof storedPatternProblem>[0]) => {
    const [, field, length] = /^(\S+) is too large.* texts of up to (\d+) characters/.exec(
      storedPatternProblem(relationship),
    )!
    return [field, Number(length)]
  }
  const subject = 's'
  const issuer = 'https://a.example'
  assert.deepEqual(lengthOf({ claimMatch: { issuer, subjectPattern: old } }), ['claim_match.subject_pattern', 65])
  assert.deepEqual(lengthOf({ claimMatch: { issuerPattern: old, subject } }), ['claim_match.issuer_pattern', 15])
  assert.deepEqual(lengthOf({ awsIdentity: { arnPattern: old } }), ['aws_identity.arn_pattern', 65])
  assert.equal(storedPatternProblem({ claimMatch: { issuer, subjectPattern: 's.*' } }), '')
})
