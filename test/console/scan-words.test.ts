// Texts of the console for scan results. "None found" never stands alone: the text says that everything was compared, or what was not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resultCoverage, withCoverage } from '#domains/scanning/reports/result-coverage.model.ts'
import {
  allPassText,
  noFindingsTexts,
  noImagesText,
  unscannedText,
  verdictBadge,
  verdictReason,
} from '../../console/src/ui/scan-words.ts'

const noSource = { reason: 'NO_SOURCE', subject: 'PyPI', message: '' } as const
const compared = resultCoverage([], 0)
const unscanned = resultCoverage([noSource], 0)
const uncounted = resultCoverage([], 2, { policy: true })

const shown = (coverage: typeof compared): string => noFindingsTexts(coverage).join(' ').trim()

test('an image without findings shows whether everything was compared, or what was not scanned', () => {
  assert.equal(shown(compared), 'No known vulnerabilities. All packages were compared with the data sources.')
  assert.equal(shown(unscanned), 'No known vulnerabilities, but not scanned: PyPI has no data source')
})

test('a search without images shows whether everything was compared, or what was not scanned', () => {
  const all = 'No image that you can see has this vulnerability. All of them were compared with the data sources.'
  assert.equal(noImagesText(unscannedText(compared)), all)
  const some =
    'No image that you can see is known to have this vulnerability, but not scanned: PyPI has no data source.'
  assert.equal(noImagesText(unscannedText(unscanned)), some)
})

test('the badge of an allowed image is good only if everything was scanned', () => {
  const badge = (result: string, coverage?: typeof compared, mode = 'POLICY_MODE_ENFORCED') =>
    verdictBadge({ mode, result, coverage } as never)
  const allowed = 'RESULT_ALLOWED'
  assert.deepEqual(badge(allowed, compared), { kind: 'good', text: 'allowed' })
  assert.deepEqual(badge(allowed, unscanned), { kind: 'warn', text: 'allowed, but not scanned completely' })
  // Policies about the age or the end of life of an image have no coverage.
  assert.deepEqual(badge(allowed), { kind: 'good', text: 'allowed' })
  assert.deepEqual(badge('RESULT_DENIED', unscanned), { kind: 'bad', text: 'denied' })
  assert.deepEqual(badge('RESULT_DENIED', compared, 'POLICY_MODE_DRY_RUN'), { kind: 'warn', text: 'would be denied' })
  assert.deepEqual(badge('RESULT_ERROR', unscanned), { kind: 'plain', text: 'the check failed' })
})

test('the reason of a verdict names findings of unknown severity that the policy does not count', () => {
  const none = 'it has no vulnerabilities of severity high or worse'
  const reasonOf = (coverage: typeof compared) => verdictReason({ reason: withCoverage(none, coverage) })
  assert.equal(reasonOf(compared), `${none}; everything was scanned`)
  assert.equal(reasonOf(unscanned), `${none}, but not scanned: PyPI has no data source`)
  assert.equal(
    reasonOf(uncounted),
    `${none}; everything was scanned; 2 findings of unknown severity, not counted by this policy`,
  )
  assert.equal(verdictReason({ reason: 'denied', exception: 'e' }), 'denied; allowed by an exemption')
})

test('a list of tags that pass every policy counts the tags that could not be scanned completely', () => {
  assert.equal(allPassText(0, 0), 'No tags have been updated yet, so no image was checked against the policies.')
  assert.equal(allPassText(3, 0), 'All of the last 3 updated tags pass every policy.')
  assert.equal(
    allPassText(3, 1),
    'All of the last 3 updated tags pass every policy. Of these, 1 tag could not be scanned completely.',
  )
})
