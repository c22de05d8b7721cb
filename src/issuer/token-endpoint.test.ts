import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerTokenRequest } from './token-endpoint.ts'

/** Form that counts how often all of its fields are read. */
class CountedForm extends URLSearchParams {
  passes = 0
  override getAll(name: string): string[] {
    this.passes++
    return super.getAll(name)
  }
}

const work = { app: { config: { deviceSignIn: true } } } as unknown as Parameters<typeof answerTokenRequest>[0]
const answer = (form: URLSearchParams) => answerTokenRequest(work, {} as never, form)

test('reads a form with many fields once', async () => {
  const form = new CountedForm(Array.from({ length: 16_000 }, (_, at): [string, string] => [at.toString(36), '']))
  const { status, body } = await answer(form)
  assert.equal(status, 400)
  assert.equal((body as { error: string }).error, 'unsupported_grant_type')
  assert.equal(form.passes, 0)
})

test('names a duplicate form field, unless it is a list', async () => {
  const { body } = await answer(new URLSearchParams('audience=a&audience=b&code=a&scope=a&code=b'))
  assert.deepEqual(body, { error: 'invalid_request', error_description: 'code must be given only once' })
})
