// How far the clock of an issuer may be from ours.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startExchange } from '../support/exchange.ts'
import type { Json } from '../support/pinfold.ts'

test('the clock of an issuer may be a minute ahead or behind', async () => {
  const time = new Date()
  const now = Math.floor(time.getTime() / 1000)
  await using scene = await startExchange({ clock: () => time })
  const { uid: identity } = await scene.identity()
  const status = async (claims: Json) => (await scene.exchange(await scene.token(claims), { identity })).status
  for (const claims of [{ nbf: now + 30 }, { iat: now + 30 }, { exp: now - 30 }, { nbf: now + 60 }]) {
    assert.equal(await status(claims), 200, JSON.stringify(claims))
  }
  for (const claims of [{ nbf: now + 62 }, { iat: now + 62 }, { exp: now - 62 }]) {
    assert.equal(await status(claims), 401, JSON.stringify(claims))
  }
})
