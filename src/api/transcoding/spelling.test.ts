import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AppError, invalid, notFound } from '#lib/errors.ts'
import { asWritten } from './spelling.ts'

const error = invalid({ field: 'sync_config.unique_tags[0].apk_name', description: 'must be a string' })

function textOf(search: string, body?: string): string {
  return (asWritten(error, search, body === undefined ? undefined : Buffer.from(body)) as AppError).message
}

test('an error names a field in the spelling of the body or the query', () => {
  const camel = '{"syncConfig":{"uniqueTags":[{"apkName":1}]}}'
  const snake = '{"sync_config":{"unique_tags":[{"apk_name":1}]}}'
  const mixed = '{"sync_config":{"uniqueTags":[{"apk_name":1}]}}'
  assert.equal(textOf('', camel), 'Invalid argument: syncConfig.uniqueTags[0].apkName: must be a string')
  assert.equal(textOf('', snake), 'Invalid argument: sync_config.unique_tags[0].apk_name: must be a string')
  assert.equal(textOf('', mixed), 'Invalid argument: sync_config.uniqueTags[0].apk_name: must be a string')
  assert.equal(
    textOf('?syncConfig.uniqueTags=1'),
    'Invalid argument: syncConfig.uniqueTags[0].apk_name: must be a string',
  )
})

test('the description spells other fields as the request does', () => {
  const together = invalid({ field: 'issuer_pattern', description: 'cannot be combined with subject_pattern' })
  const spelled = (body: string) => (asWritten(together, '', Buffer.from(body)) as AppError).message
  assert.equal(
    spelled('{"issuerPattern":"a","subjectPattern":"b"}'),
    'Invalid argument: issuerPattern: cannot be combined with subjectPattern',
  )
  assert.equal(
    spelled('{"issuer_pattern":"a","subjectPattern":"b"}'),
    'Invalid argument: issuer_pattern: cannot be combined with subjectPattern',
  )
  assert.equal(spelled('{"issuer":"a"}'), together.message)
})

test('the details of the error use the names of the contract', () => {
  const written = asWritten(error, '?syncConfig=1', undefined) as AppError
  assert.deepEqual(written.details, error.details)
  assert.deepEqual([written.code, written.reason, written.http], ['INVALID_ARGUMENT', 'INVALID_ARGUMENT', 400])
  const others = [
    new Error('a_b'),
    notFound('registry.pinfold.dev/Repo', 'a_b'),
    invalid({ field: 'name', description: 'd' }),
  ]
  for (const other of others) assert.equal(asWritten(other, '?aB=1', undefined), other)
})
