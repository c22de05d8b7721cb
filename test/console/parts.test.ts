// Parts of the console that do not depend on a browser.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { aboutTags } from '#domains/rules/patterns.model.ts'
import { movedPath, paths, routeOf } from '../../console/src/app/paths.ts'
import { readMarkdown } from '../../console/src/data/markdown.ts'
import { isAbout } from '../../console/src/data/patterns.ts'
import { hasCapability, hasCapabilityWithin } from '../../console/src/data/rights.ts'
import type { Move } from '../../console/src/data/types.ts'
import { toUniqueNames } from '../../console/src/data/unique-names.ts'
import { planOf } from '../../console/src/screens/keyless/conditions.ts'
import { nextBar } from '../../console/src/screens/tags/bars.ts'
import { toAssignments } from '../../console/src/screens/tags/moves.ts'
import { viewName } from '../../console/src/screens/tags/view-names.ts'
import { filterOptions } from '../../console/src/ui/picker-options.ts'
import { relativeText } from '../../console/src/ui/relative-time.ts'
import { ok } from '../support/expect.ts'
import { startPinfold } from '../support/pinfold.ts'

const pinfold = await startPinfold()
after(() => pinfold[Symbol.asyncDispose]())

test('redirects former pages to their present address, and no others', () => {
  const moved: [string, string | undefined][] = [
    ['/ui/g/', '/ui/organizations'],
    ['/ui/g/acme/~/access', '/ui/g/acme/~/members'],
    ['/ui/g/acme/payments/~/gates', '/ui/g/acme/payments/~/policies/admission'],
    ['/ui/g/acme/~/events', '/ui/g/acme/~/integrations/webhooks'],
    ['/ui/g/acme/~/policies', '/ui/g/acme/~/policies/admission'],
    ['/ui/g/acme/~/policies/admission', undefined],
    ['/ui/g/acme/~/audit', undefined],
    ['/ui/g/acme/access', undefined],
    ['/ui/r/acme/app/~/tags/access', undefined],
  ]
  for (const [path, wanted] of moved) assert.equal(movedPath(path), wanted)
})

test('finds a permission in a group, above it, and below it', () => {
  const rights = (scope: string) => ({ held: [{ scope, names: new Set(['repo.list']) }] })
  assert.equal(hasCapabilityWithin(rights('a/b'), 'repo.list', 'a'), true)
  assert.equal(hasCapabilityWithin(rights('a'), 'repo.list', 'a/b'), true)
  assert.equal(hasCapabilityWithin(rights('ab'), 'repo.list', 'a'), false)
  assert.equal(hasCapabilityWithin(rights('a/b'), 'repo.delete', 'a'), false)
})

test('shows times of the last day relative to now, and other times as a date', () => {
  const now = Date.parse('2026-11-29T12:00:00Z')
  const texts: [string, string][] = [
    ['2026-11-29T11:59:30Z', 'just now'],
    ['2026-11-29T11:42:00Z', '18 min ago'],
    ['2026-11-29T14:30:00Z', 'in 2 h'],
    ['2026-11-28T12:00:01Z', '23 h ago'],
    ['2026-11-28T11:00:00Z', '28 Nov'],
    ['2025-11-28T11:00:00Z', '28 Nov 2025'],
  ]
  for (const [at, wanted] of texts) assert.equal(relativeText(at, now, 'UTC'), wanted)
})

test('finds options by a part of their name, those that begin with it first', () => {
  const options = ['platform', 'edge', 'web-edge', 'data'].map((label) => ({ value: label, label }))
  const found = (text: string) =>
    filterOptions([...options, { value: 'x', label: 'x', description: 'At the edge' }], text)
  assert.deepEqual(
    found(' Edge ').map(({ value }) => value),
    ['edge', 'web-edge', 'x'],
  )
  assert.deepEqual(found('nothing'), [])
})

test('parses the URLs that it writes for routes', () => {
  const names = ['acme', 'a team', 'x/y', '~', 'é%']
  const routes: [string, object][] = [
    [paths.start, { head: '', names: [], tail: [] }],
    [paths.group(names.slice(0, 3)), { head: 'g', names: names.slice(0, 3), tail: [] }],
    [paths.group(['acme'], 'access'), { head: 'g', names: ['acme'], tail: ['access'] }],
    [paths.tag(['acme', 'app'], 'v1.0_x'), { head: 'r', names: ['acme', 'app'], tail: ['tags', 'v1.0_x'] }],
    [paths.digest(['acme', 'é%'], 'sha256:ab'), { head: 'r', names: ['acme', 'é%'], tail: ['digests', 'sha256:ab'] }],
  ]
  for (const [written, wanted] of routes) {
    const { pathname, search } = new URL(written, 'http://pinfold.invalid')
    const { head, names, tail } = routeOf(pathname, search)!
    assert.deepEqual({ head, names, tail }, wanted)
  }
  for (const path of ['/v2/', '/ui/api/auth/v1/ok', '/ui/signin', '/ui/sessions', '/ui/assets/x.js', '/ui/enter']) {
    assert.equal(routeOf(path, ''), undefined, path)
  }
  assert.equal(routeOf('/ui/signing', '')?.head, 'signing')
  const changed = paths.with({ pathname: '/ui/r/a', search: '?page=3&order=name+asc' }, { page: undefined, at: 'x' })
  assert.equal(changed, '/ui/r/a?order=name+asc&at=x')
})

test('equal names get numbers, also if a name already looks numbered', () => {
  assert.deepEqual(toUniqueNames(['a', 'b']), ['a', 'b'])
  assert.deepEqual(toUniqueNames(['a', 'a (2)', 'a', 'a']), ['a', 'a (2)', 'a (3)', 'a (4)'])
  assert.deepEqual(toUniqueNames([]), [])
})

test('a permission applies in its scope and below, and not elsewhere', () => {
  const [org, folder] = ['a'.repeat(40), `${'a'.repeat(40)}/${'1'.repeat(16)}`]
  const rights = { held: [{ scope: folder, names: new Set(['CAP_TAG_DELETE', 'repo.create']) }] }
  assert.ok(
    hasCapability(rights, 'tag.delete', folder) && hasCapability(rights, 'repo.create', `${folder}/${'2'.repeat(16)}`),
  )
  assert.ok(!hasCapability(rights, 'tag.delete', org) && !hasCapability(rights, 'groups.create', folder))
  assert.ok(!hasCapability(rights, 'tag.delete', `${folder}1`))
  assert.ok(hasCapability(rights, 'tag.delete') && !hasCapability({ held: [] }, 'tag.delete'))
  assert.ok(hasCapability({ held: [{ scope: '/', names: 'all' }] }, 'groups.create', org))
})

test('toAssignments returns the assignments of a tag, the oldest first, without deletions', () => {
  const move = (event: string, digest: string, time: string, endTime?: string) =>
    ({ event, digest, time, ...(endTime && { endTime }) }) as Move
  const [first, second, third] = ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z', '2026-01-03T00:00:00.000Z']
  const stays = toAssignments([
    move('EVENT_CREATED', 'b', third),
    move('EVENT_DELETED', 'a', second, third),
    move('EVENT_CREATED', 'a', first, second),
  ])
  assert.deepEqual(
    stays.map(({ digest, start, end }) => [digest, start, end]),
    [
      ['a', Date.parse(first), Date.parse(second)],
      ['b', Date.parse(third), undefined],
    ],
  )
})

const github = 'https://token.actions.githubusercontent.com'
const tokenOf = (claims: object) => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'RS256' })}.${part(claims)}.c2lnbmF0dXJl`
}
const times = { iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 300 }
const audience = { aud: pinfold.url }
const ofGitHub = { iss: github, repository: 'acme/app', repository_id: '12', repository_owner_id: '34' }

test('conditions from a CI token match this job and no other', async () => {
  const org = await pinfold.seed.group('')
  const kubernetes = { iss: 'https://cluster.example.com', sub: 'system:serviceaccount:ci:builder' }
  const gitlab = {
    iss: 'https://gitlab.com',
    sub: 'project_path:acme/app:ref_type:branch:ref:main',
    project_path: 'acme/app',
  }
  const tokens = [
    ...['ref:refs/heads/main', 'environment:prod', 'pull_request', 'ref:refs/tags/v1.0+x(1)'].flatMap((rest) => [
      { ...ofGitHub, sub: `repo:acme/app:${rest}` },
      { ...ofGitHub, sub: `repo:acme@34/app@12:${rest}` },
    ]),
    { ...gitlab, project_id: '5', namespace_id: '6' },
    kubernetes,
  ]
  for (const claims of tokens) {
    const plan = planOf(tokenOf({ ...claims, ...times, ...audience }))!
    assert.ok(!JSON.stringify(plan).includes('c2lnbmF0dXJl'), 'the signature goes nowhere')
    const check = async (other: object) => {
      const body = { claims: JSON.stringify({ ...claims, ...times, ...audience, ...other }), match: plan.conditions }
      return ok(await pinfold.operator.post(`/control/v1/claimChecks/${org.uid}`, body)).matches as boolean
    }
    assert.equal(await check({}), true, claims.sub)
    assert.equal(await check({ sub: `${claims.sub}x` }), false)
    assert.equal(await check({ iss: 'https://evil.example.com' }), false)
    if ('repository_id' in claims) assert.equal(await check({ repository_id: '99' }), false)
    ok(await pinfold.operator.post(`/iam/v2/identities/${org.uid}`, { name: plan.name, claimMatch: plan.conditions }))
  }
})

test('planOf accepts repository URLs, marks their names as recyclable, and rejects other text', () => {
  for (const text of ['https://github.com/acme/app', 'git@github.com:acme/app.git', 'github.com/acme/app/']) {
    const plan = planOf(text)!
    assert.deepEqual([plan.platform, plan.isRecyclable], ['github', true])
    assert.ok(new RegExp(`^${plan.conditions.subjectPattern}$`).test('repo:acme@1/app@2:ref:refs/heads/main'))
    assert.ok(!new RegExp(`^${plan.conditions.subjectPattern}$`).test('repo:acme/app:pull_request'))
  }
  assert.equal(planOf('https://gitlab.com/acme/team/app')?.platform, 'gitlab')
  for (const text of [
    '',
    'acme',
    'https://github.com/acme',
    'https://evil.example.com/a/b',
    'a.b.c',
    tokenOf({ sub: 'x' }),
  ]) {
    assert.equal(planOf(text), undefined, text)
  }
})

test('the name of a view contains the time to the millisecond, the age, or both', () => {
  const at = '2026-11-01T12:00:00.123Z'
  assert.equal(viewName(at, '', ''), 'at-20261101t120000.123z')
  assert.equal(viewName(undefined, '7d', ''), 'min-7d')
  assert.equal(viewName(at, '7d', '1h'), 'at-20261101t120000.123z_min-7d_hold-1h')
  assert.equal(viewName(undefined, '', '1h'), '')
})

const textsOf = (markdown: string) => JSON.stringify(readMarkdown(markdown).blocks)

test('parses a readme into headings, paragraphs, lists, quotes and code, and its HTML stays text', () => {
  const { blocks, isCut } = readMarkdown(
    [
      '# The `app`',
      'Pulls *often*,',
      'and **well**.',
      '',
      '- one',
      '  goes on',
      '- two',
      '',
      '> said',
      '',
      '```sh',
      '# not a title',
      '```',
    ].join('\n'),
  )
  assert.deepEqual(blocks, [
    {
      is: 'heading',
      inlines: [
        { is: 'text', text: 'The ' },
        { is: 'code', text: 'app' },
      ],
    },
    {
      is: 'paragraph',
      inlines: [
        { is: 'text', text: 'Pulls ' },
        { is: 'em', text: 'often' },
        { is: 'text', text: ', and ' },
        { is: 'strong', text: 'well' },
        { is: 'text', text: '.' },
      ],
    },
    { is: 'list', isNumbered: false, items: [[{ is: 'text', text: 'one goes on' }], [{ is: 'text', text: 'two' }]] },
    { is: 'quote', inlines: [{ is: 'text', text: 'said' }] },
    { is: 'code', text: '# not a title' },
  ])
  assert.equal(isCut, false)
  const html = '<img src=x onerror="alert(1)"><script>alert(1)</script>'
  assert.deepEqual(readMarkdown(html).blocks, [{ is: 'paragraph', inlines: [{ is: 'text', text: html }] }])
})

test('a readme links only to http and https pages of other sites', () => {
  const link = (href: string) => textsOf(`[here](${href})`).includes('"link"')
  for (const href of ['https://example.com/a?b#c', 'HTTP://example.com']) assert.ok(link(href), href)
  for (const href of [
    'javascript:alert%281%29',
    'data:text/html,x',
    '/ui/signout',
    '//evil.example',
    'https:/v2/x',
    'https://',
    'mailto:a@b',
  ]) {
    assert.ok(!link(href), href)
  }
  assert.ok(!textsOf('![tracks you](https://evil.example/pixel.png)').includes('"img"'))
})

test('parses a readme of any size and shape quickly, and cuts it at a limit', () => {
  const size = 512 * 1024
  for (const unit of [
    '[',
    '*a',
    '`',
    '# ',
    '> ',
    '- a\n',
    '*a* ',
    '[a](',
    '![a](b "',
    ' ',
    '1. ',
    '```\n',
    '_ ',
    '\u2028',
  ]) {
    const { blocks } = readMarkdown(`#${unit.repeat(size / unit.length)}x\u2028`)
    const { blocks: more } = readMarkdown(unit.repeat(size / unit.length))
    for (const some of [blocks, more]) {
      const parts = some.flatMap((one) =>
        one.is === 'list' ? one.items.flat() : one.is === 'code' ? [one] : one.inlines,
      )
      assert.ok(some.length <= 300 && parts.length <= 12_000, unit)
    }
  }
})

test('isAbout matches the same tags as the server', () => {
  const patterns = ['v*', '*-rc*', 'latest', '*', 'v*.*.*', 'a*a', '**', 'v1']
  const names = ['v1', 'v1.2.3', 'v1.2-rc1', 'latest', 'a', 'aa', 'aba', 'v', 'x-rc', 'v.1', 'V1']
  const sets = [[], ...patterns.map((one) => [one]), ['v*', 'latest']]
  for (const tags of sets) {
    for (const exceptTags of sets) {
      for (const name of names) {
        const rule = { tags, exceptTags }
        assert.equal(isAbout(rule, name), aboutTags(rule)(name), `${JSON.stringify(rule)} ${name}`)
      }
    }
  }
})

test('arrow keys move between bars: in time, within the row of a digest, to the ends, and not beyond', () => {
  const stays = ['a', 'b', 'a', 'c', 'a'].map((digest) => ({ digest }))
  const led = (at: number, ...keys: string[]) => keys.map((key) => nextBar(stays, at, key))
  assert.deepEqual(led(2, 'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End'), [1, 3, 0, 4, 0, 4])
  assert.deepEqual(led(0, 'ArrowLeft', 'ArrowUp', 'Home'), [0, 0, 0])
  assert.deepEqual(led(4, 'ArrowRight', 'ArrowDown', 'End'), [4, 4, 4])
  assert.deepEqual(led(3, 'ArrowUp', 'ArrowDown'), [3, 3])
  assert.deepEqual(led(1, 'Enter', ' ', 'j', 'Tab'), [undefined, undefined, undefined, undefined])
})
