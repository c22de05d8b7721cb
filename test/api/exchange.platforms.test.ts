import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readOutsideToken } from '#issuer/outside-token.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { looseToken } from '../support/fake-sts.ts'
import { type Json, type Pinfold, roleUids, startPinfold } from '../support/pinfold.ts'
import { type Claims, exampleUrl, platforms } from '../support/platforms.ts'

const folder = fileURLToPath(new URL('../../docs/identities', import.meta.url))
const outside = { allowInsecureIssuers: true, allowPrivateAddresses: true }

/** Token in a guide, and the identities that the guide creates, by name. */
function readGuide(name: string): { token: Claims; identities: Map<string, string> } {
  const text = readFileSync(join(folder, `${name}.md`), 'utf8')
  const bodies = [...text.matchAll(/<<'EOF'\n([\s\S]*?)\nEOF$/gm)].map((match) => match[1]!)
  return {
    token: JSON.parse(/^```json\n([\s\S]*?)^```$/m.exec(text)![1]!) as Claims,
    identities: new Map(bodies.map((body) => [(JSON.parse(body) as Json).name, body])),
  }
}

/**
 * Fake issuers by the real URLs that they replace. The path of the URL stays, because some platforms have many issuers on one
 * host.
 */
async function startIssuers(urls: readonly string[]) {
  const issuers = new Map<string, FakeIssuer>()
  for (const url of new Set(urls)) {
    issuers.set(url, await startIssuer('RS256', url.replace(/^https:\/\/[^/]+/, '')))
  }
  return {
    issuers,
    /** Replaces the real issuers and the server URL in the text of a guide by the fake ones. */
    real: (text: string, pinfold: Pinfold): string =>
      [...issuers]
        .reduce((changed, [url, issuer]) => changed.replaceAll(`"${url}"`, `"${issuer.url}"`), text)
        .replaceAll(exampleUrl, pinfold.url),
    async [Symbol.asyncDispose]() {
      for (const issuer of issuers.values()) await issuer[Symbol.asyncDispose]()
    },
  }
}

/** Same steps as in the guides. */
function exchange(pinfold: Pinfold, token: string, identity: string) {
  const form = new URLSearchParams({ aud: pinfold.url, identity })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return pinfold.withToken(token).call('POST', '/sts/exchange', form.toString(), headers)
}

for (const { guide, title, claims, identities } of platforms) {
  test(`the identity from the guide to ${title} accepts a token of the job in the guide, and no other`, async () => {
    const written = readGuide(guide)
    assert.deepEqual(written.token, claims)
    assert.deepEqual(
      [...written.identities.keys()],
      identities.map((one) => one.name),
    )
    const allClaims = identities.flatMap(({ accepts, refuses }) => [...accepts, ...Object.values(refuses)])
    await using fakes = await startIssuers([claims, ...allClaims].flatMap(({ iss }) => (iss ? [String(iss)] : [])))
    await using pinfold = await startPinfold(outside)
    const org = await pinfold.seed.group()
    await pinfold.seed.repo(org.uid, { name: 'ledger' })

    const tokenOf = (change: Claims): Promise<string> => {
      const merged = { ...claims, ...change }
      const issuer = fakes.issuers.get(String(merged.iss))!
      return issuer.token(JSON.parse(fakes.real(JSON.stringify(merged), pinfold)) as Claims)
    }
    for (const { name, accepts, refuses } of identities) {
      const body = JSON.parse(fakes.real(written.identities.get(name)!, pinfold)) as Json
      if (body.staticKeys) {
        body.staticKeys.issuerKeys = JSON.stringify(fakes.issuers.get(String(claims.iss))!.jwks())
      }
      const identity = await pinfold.seed.identity(org.uid, { claimMatch: undefined, ...body })
      await pinfold.seed.binding(org.uid, identity.uid, roleUids.viewer)

      for (const change of accepts) {
        const got = await exchange(pinfold, await tokenOf(change), identity.uid)
        assert.equal(got.status, 200, `${name}: ${got.text}`)
        const job = pinfold.withToken(got.body.token)
        const list = await job.get('/registry/v2/repos')
        assert.deepEqual(
          list.body.repos.map((repo: Json) => repo.name),
          ['ledger'],
        )
        assert.equal((await job.post(`/registry/v2/repos/${org.uid}`, { name: 'web' })).status, 403)
      }
      for (const [what, change] of Object.entries(refuses)) {
        const got = await exchange(pinfold, await tokenOf(change), identity.uid)
        // The error contains no further details for a token whose audience is neither this server nor one of the identity.
        const meant = [exampleUrl, body.claimMatch?.audience]
        const isForUs = [change.aud ?? claims.aud].flat().some((aud) => meant.includes(aud as string))
        assert.deepEqual([got.status, got.body.code], isForUs ? [403, 7] : [401, 16], `${name}, ${what}: ${got.text}`)
      }
      const elsewhere = await tokenOf({ ...accepts[0], aud: 'https://elsewhere.example.com' })
      assert.equal((await exchange(pinfold, elsewhere, identity.uid)).status, 401, `${name}, for somebody else`)
    }
  })
}

test('each guide is for a tested platform, and is listed in the index', () => {
  // The guide of AWS is left out, because it is about requests and not about tokens.
  const about = ['README.md', 'keys.md', 'aws.md']
  const guides = globSync('*.md', { cwd: folder }).filter((file) => !about.includes(file))
  assert.deepEqual(guides.sort(), platforms.map(({ guide }) => `${guide}.md`).sort())
  const index = readFileSync(join(folder, 'README.md'), 'utf8')
  for (const file of guides) assert.ok(index.includes(`(${file})`), file)
})

test("Google's old issuer without a scheme is read as the URL that it stands for", () => {
  const token = (iss: string) => looseToken({ iss, sub: '113774264463038321964', aud: exampleUrl, exp: 1 })
  const old = readOutsideToken(token('accounts.google.com'))
  assert.deepEqual([old.issuer, old.claims.iss], ['https://accounts.google.com', 'https://accounts.google.com'])
  assert.equal(readOutsideToken(token('https://accounts.google.com')).issuer, 'https://accounts.google.com')
  for (const alike of ['accounts.google.com/', 'Accounts.google.com', 'accounts.google.com.example.com']) {
    assert.equal(readOutsideToken(token(alike)).issuer, alike)
  }
})
