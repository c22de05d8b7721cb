// The settings that name the database.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, readConfig } from '#config.ts'

const read = (name: string, value: string) => readConfig({ [name]: value, PINFOLD_MASTER_KEY: '00'.repeat(32) })

test('an error for a database URL with several hosts names the alternative', () => {
  for (const value of [
    'postgres://me@a,b/x',
    'postgresql://me:secret@a:5432,b:5433/x',
    'postgres://a/x?target_session_attrs=read-write',
    'postgres://a/x?schema=y&target_session_attrs=primary',
    'postgres:///x?host=a,b',
  ]) {
    assert.throws(
      () => read('PINFOLD_DATABASE', value),
      (error: Error) => {
        assert.ok(error instanceof ConfigError)
        assert.match(error.message, /PINFOLD_DATABASE must have one host.*a proxy or a virtual address/)
        assert.doesNotMatch(error.message, /secret/)
        return true
      },
    )
  }
  for (const value of [
    'postgres://me:a,b@h/x',
    'postgres://h/x?target_session_attrs=any',
    'postgres:///x?host=/run/pg',
  ]) {
    assert.equal(read('PINFOLD_DATABASE', value).database, value)
  }
})

test('refuses a direct URL that leads through a pooler', () => {
  const direct = (value: string) => read('PINFOLD_DATABASE_DIRECT', value).databaseDirect
  assert.equal(direct('postgres://h/x?schema=y'), 'postgres://h/x?schema=y')
  assert.throws(() => direct('postgres://h/x?pooled=true'), /PINFOLD_DATABASE_DIRECT must lead to the database itself/)
})
