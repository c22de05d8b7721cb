// Each verb of each noun, by name and in each output format.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { listFormats, oneFormats } from '#cli/framework/outputs.ts'
import { commandsIn } from '../support/commands.ts'
import { type FakeIssuer, startIssuer } from '../support/fake-issuer.ts'
import { makeHome } from '../support/fake-sts.ts'
import { startRegistry } from '../support/registry.ts'

let registry: Awaited<ReturnType<typeof startRegistry>>
let issuer: FakeIssuer
let home: ReturnType<typeof makeHome>
let cli: ReturnType<typeof commandsIn>

before(async () => {
  registry = await startRegistry({ allowInsecureIssuers: true, allowPrivateAddresses: true })
  issuer = await startIssuer()
  home = makeHome()
  cli = commandsIn({ ...home.env, PINFOLD_API: registry.url, PINFOLD_TOKEN: registry.operator.token! })
  const other = 'identities create other --in acme --identity-issuer https://other.example --subject other'
  await done(...other.split(' '))
  const kept = 'identity-providers create kept --in acme --default-role viewer --oidc-client-id kept'
  await done(...kept.split(' '), '--oidc-pkce-enabled', '--oidc-issuer', issuer.url)
})
after(async () => {
  home[Symbol.dispose]()
  await issuer[Symbol.asyncDispose]()
  await registry[Symbol.asyncDispose]()
})

async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(...args)
  assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
  return stdout
}

type Noun = {
  words: string
  /** Command that creates a resource, whose uid `describe` prints afterwards. */
  create: string
  /** Verb that deletes it, if not `delete`. */
  remove?: string
  /** Name of the resource in commands, and its name after the update. */
  name: string
  /** Name of the resource in lists. */
  shown?: string
  /** Parent of the resource in the hierarchy. */
  at: RegExp
  list?: string
  update?: { options: string; name?: string; shows: RegExp }
  /** The repository is empty, so it is deleted without confirmation. */
  asksNothing?: true
}

const nouns: readonly Noun[] = [
  {
    words: 'orgs',
    create: 'create spare',
    name: 'spare',
    at: /^spare$/m,
    update: { options: '--name sparse --description Few', name: 'sparse', shows: /"description": "Few"/ },
  },
  {
    words: 'folders',
    create: 'create team --in acme',
    name: 'acme/team',
    shown: 'team',
    at: /^acme\n└─ team$/m,
    list: '--in acme',
    update: { options: '--name crew', name: 'acme/crew', shows: /"name": "crew"/ },
  },
  {
    words: 'repos',
    create: 'create acme/app',
    name: 'acme/app',
    at: /^acme\n└─ app$/m,
    list: '--in acme',
    update: { options: '--description Sells', shows: /"description": "Sells"/ },
    asksNothing: true,
  },
  {
    words: 'identities',
    create: 'create ci --in acme --identity-issuer https://ci.example --subject ci',
    name: 'acme/ci',
    shown: 'ci',
    at: /^acme\n(?:├.*\n)*[├└]─ ci$/m,
    list: '--in acme',
    update: { options: '--name robot --subject robot', name: 'robot', shows: /"subject": "robot"/ },
  },
  {
    words: 'roles',
    create: 'create maker --in acme --capabilities repo.create',
    name: 'acme/maker',
    shown: 'maker',
    at: /^acme\n└─ maker$/m,
    list: '--in acme',
    update: { options: '--name builder --add-capabilities repo.list', name: 'builder', shows: /"name": "builder"/ },
  },
  {
    words: 'members',
    create: 'add other --in acme --role viewer',
    remove: 'remove',
    name: 'acme/other as viewer',
    shown: 'other as viewer',
    at: /^acme\n(?:├.*\n)*[├└]─ other as viewer$/m,
    list: '--in acme',
    update: { options: '--role editor', name: 'other as editor', shows: /"name": "editor"/ },
  },
  {
    words: 'invitations',
    create: 'create --in acme --role viewer --email bob@acme.example',
    name: 'acme/bob@acme.example',
    shown: 'bob@acme.example',
    at: /^acme\n└─ bob@acme\.example$/m,
    list: '--in acme',
  },
  {
    words: 'identity-providers',
    create:
      'create corp --in acme --default-role viewer --oidc-client-id pinfold --oidc-pkce-enabled --oidc-issuer ISSUER',
    name: 'corp',
    at: /^acme\n(?:├.*\n)*[├└]─ corp$/m,
    list: '--in acme',
    update: { options: '--name people', name: 'acme/people', shows: /"name": "people"/ },
  },
  {
    words: 'identity-providers group-mappings',
    create: 'create --idp acme/kept --external-group-id eng/devs --role viewer --in acme',
    name: 'eng/devs',
    at: /^acme\n└─ eng\n {3}└─ devs$/m,
    list: 'acme/kept',
  },
  {
    words: 'identity-providers group-mappings',
    create: 'create --idp kept --external-group-id ops --role viewer --in acme',
    name: 'acme/kept/ops',
    shown: 'ops',
    at: /^acme\n└─ ops$/m,
    list: 'kept',
  },
  {
    words: 'cloud-accounts',
    create: 'link aws acme --account 123456789012',
    name: 'acme',
    shown: 'accounts',
    at: /^acme$/m,
  },
]

for (const noun of nouns) {
  const { words, create, remove = 'delete', name, shown = name, at, list = '', update, asksNothing } = noun
  const verb = (...args: string[]) => done(...words.split(' '), ...args.filter((arg) => arg !== ''))
  const listed = (format: string) => verb('list', ...list.split(' '), '-o', format)

  test(`pinfold ${words}: create, list, describe, update and delete by name, in every format`, async () => {
    const uid = (await verb(...create.replace('ISSUER', issuer.url).split(' '), '-o', 'id')).trimEnd()
    assert.match(uid, /^[0-9a-f]{40}(?:\/[0-9a-f]{16})*$/)

    const one = await inFormats(oneFormats, (format) => verb('describe', name, '-o', format))
    assert.equal(one.id, `${uid}\n`)
    assert.equal(JSON.parse(one.json).id, uid)
    assert.equal(one.terse, `${shown}\n`)
    assert.ok(one.table.includes(uid) && one.wide.includes(uid))
    assert.equal(one.none, '')
    assert.deepEqual(readByShell(one.env), [uid, shown])

    const all = await inFormats(listFormats, listed)
    assert.ok(all.id.split('\n').includes(uid))
    const { items, ...rest } = JSON.parse(all.json)
    assert.deepEqual(rest, {})
    assert.equal(items.filter(({ id }: { id: string }) => id === uid).length, 1)
    assert.ok(all.terse.split('\n').includes(shown))
    assert.match(all.tree, at)
    assert.equal(all.none, '')
    const heads = all.table.split('\n')[0]!.split(/ {2,}/)
    assert.equal(all.csv.split('\n')[0], heads.join(','))
    assert.equal(all.markdown.split('\n')[0], `| ${heads.join(' | ')} |`)
    const rows = items.length + 1
    assert.deepEqual([all.table, all.csv, all.wide].map(linesOf), [rows, rows, rows])
    assert.equal(linesOf(all.markdown), rows + 1)
    assert.ok(all.wide.split('\n')[0]!.startsWith(heads[0]!))
    assert.equal((await cli(...words.split(' '), 'describe', name, '-o', 'yaml')).code, 64)

    if (update) await verb('update', name, ...update.options.split(' '))
    const now = update?.name ?? name
    if (update) assert.match(await verb('describe', now, '-o', 'json'), update.shows)

    const unasked = await cli(...words.split(' '), remove, now)
    assert.equal(unasked.code, asksNothing ? 0 : 64, unasked.stderr)
    if (!asksNothing) await verb(remove, now, '--yes')
    assert.ok(!(await listed('id')).includes(uid))
    assert.equal((await cli(...words.split(' '), 'describe', now)).code, 1)
    await verb(remove, now, '--yes', '--allow-missing')
    const left = await listed('id')
    for (const nothing of ['', 'acme/', '/']) {
      const { code, stderr } = await cli(...words.split(' '), remove, nothing, '--yes')
      assert.ok(code === 64 || code === 1, `${nothing}: ${code} ${stderr}`)
    }
    assert.equal(await listed('id'), left, 'what is named by nothing is not deleted')
  })
}

const linesOf = (text: string): number => text.trimEnd().split('\n').length

async function inFormats<F extends string>(formats: readonly F[], ask: (format: F) => Promise<string>) {
  const entries: [F, string][] = []
  for (const format of formats) entries.push([format, await ask(format)])
  return Object.fromEntries(entries) as Record<F, string>
}

/** The values of the lines in order, as in a shell. */
function readByShell(lines: string): string[] {
  const variables = [...lines.matchAll(/^export (\w+)=/gm)].map(([, variable]) => variable)
  const printed = variables.map((variable) => `printf '%s\\n' "$${variable}"`).join('\n')
  return execFileSync('sh', ['-c', `${lines}\n${printed}`], { encoding: 'utf8' })
    .trimEnd()
    .split('\n')
}

test('pinfold tags: create, list, describe, update and delete by name, in every format', async () => {
  const host = new URL(registry.url).host
  const { pusher } = registry
  const digests = [(await pusher.pushImage('acme/web', '1.0')).digest, (await pusher.pushImage('acme/web')).digest]
  const tags = (...args: string[]) => done('tags', ...args)
  await tags('create', 'acme/web:stable', '1.0')
  const one = await inFormats(oneFormats, (format) => tags('describe', 'acme/web:stable', '-o', format))
  const described = JSON.parse(one.json)
  const uid = one.id.trimEnd()
  assert.deepEqual([described.id, described.uid, described.digest], [uid, uid, digests[0]])
  assert.equal(described.lastUpdated, described.updateTime)
  assert.equal(one.terse, 'stable\n')
  assert.deepEqual(readByShell(one.env), [uid, 'stable'])
  assert.match(one.table, new RegExp(`^tag +stable\\ndigest +${digests[0]}\\nupdated +\\S+Z\\n`))
  const all = await inFormats(listFormats, (format) => tags('list', `${host}/acme/web`, '-o', format))
  assert.deepEqual(all.terse.split('\n').toSorted(), ['', '1.0', 'stable'])
  assert.ok(all.id.split('\n').includes(uid))
  assert.deepEqual(JSON.parse(all.json).items[0], described)
  assert.match(all.csv, /^TAG,DIGEST,UPDATED\nstable,sha256:/)
  assert.match(all.markdown, /^\| TAG \| DIGEST \| UPDATED \|\n\| --- /)
  assert.match(all.tree, /^acme\n└─ web:1\.0\n|^acme\n├─ web:1\.0\n└─ web:stable$/m)
  assert.match(all.wide, /^TAG +DIGEST +UPDATED +CREATED +UID\n/)
  assert.equal(all.none, '')
  await tags('update', 'acme/web:stable', digests[1]!)
  assert.equal(await tags('digest', 'acme/web:stable'), `${digests[1]}\n`)
  await tags('delete', 'acme/web:stable', '--yes')
  assert.match((await cli('tags', 'describe', 'acme/web:stable')).stderr, /acme\/web has no tag stable/)

  const images = await inFormats(listFormats, (format) => done('images', 'list', '--in', 'acme', '-o', format))
  const [image] = JSON.parse(images.json).items
  assert.deepEqual([image.image, image.id], [`${host}/acme/web`, image.uid])
  assert.equal(images.id, `${image.uid}\n`)
  assert.equal(images.terse, `${host}/acme/web\n`)
  assert.match(images.csv, /^IMAGE,UPDATED,ABOUT\n/)
})

test('creates nothing if the Docker configuration cannot be written', async () => {
  const env = { ...home.env, PINFOLD_API: registry.url, PINFOLD_TOKEN: registry.operator.token! }
  const folder = join(home.home, 'away')
  symlinkSync(join(home.home, 'not/there'), folder)
  const nowhere = commandsIn({ ...env, DOCKER_CONFIG: folder })
  const made = await nowhere('orgs', 'create', 'shut', '--configure-docker')
  assert.deepEqual([made.code, made.stdout], [1, ''])
  assert.match(
    made.stderr,
    /^pinfold: \S+\/away\/config\.json cannot be written: \w+\npinfold: set DOCKER_CONFIG to use another folder/,
  )
  assert.equal((await cli('orgs', 'describe', 'shut')).code, 1)
  const saved = await nowhere('docker', 'configure', '--pull-token', '--save', '--in', 'acme')
  assert.equal(saved.code, 1)
  assert.equal(await done('tokens', 'pull', 'list', '--in', 'acme'), '')
})

test('an error for an existing or reserved name contains the next step', async () => {
  await done('folders', 'create', 'first', '--in', 'acme')
  const wrong = async (next: RegExp, ...args: string[]) => {
    const { code, stdout, stderr } = await cli('folders', ...args)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, next)
  }
  const letters =
    /name must match ".*\npinfold: a name has lowercase letters, digits, spaces, dots, _ and -, such as team-1\n$/
  await wrong(letters, 'create', 'Team!', '--in', 'acme')
  await wrong(letters, 'update', 'acme/first', '--name', 'Team!')
  await wrong(/description must match ".*\n$/, 'update', 'acme/first', '--description', 'two\nlines')
  await wrong(
    /already exists.*\npinfold: choose another name; to list the folders: pinfold folders list/,
    'create',
    'first',
    '--in',
    'acme',
  )
})
