// Tolerance for the clocks of issuers, in an exchange and in its dry run.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimsOf, startExchange } from '../support/exchange.ts'
import { ok } from '../support/expect.ts'
import { roleUids } from '../support/pinfold.ts'

const now = Math.floor(Date.now() / 1000)
const year = 366 * 86_400

test('accepts issuer clocks up to a minute ahead or behind, for an exchange and for its dry run', async () => {
  const time = new Date(now * 1000)
  await using scene = await startExchange({ clock: () => time })
  const { pinfold, org } = scene
  const { uid: identity } = await scene.identity()
  const owner = await pinfold.as((await pinfold.seed.member(org.uid, roleUids.owner)).uid)
  const bounds: [claim: string, good: number, bad: number][] = [
    ['nbf', now + 60, now + 61],
    ['iat', now + 60, now + 61],
    ['exp', now - 59, now - 60],
    ['exp', now + year, now + year + 1],
  ]
  for (const [claim, good, bad] of bounds) {
    for (const value of [good, bad]) {
      const token = await scene.token({ [claim]: value })
      const { status } = await scene.exchange(token, { identity })
      assert.equal(status, value === good ? 200 : 401, `${claim} ${value - now}`)
      const body = { claims: JSON.stringify(claimsOf(token)) }
      const { matches } = ok(await owner.post(`/control/v1/claimChecks/${identity}`, body))
      assert.equal(matches, value === good, `${claim} ${value - now}`)
    }
  }
})
