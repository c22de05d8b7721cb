// Guides for operators: production, upgrades and backups. Runs them on a server in a separate process, with its data folder.
import assert from 'node:assert/strict'
import { existsSync, globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parseEnv } from 'node:util'
import { readConfig, settings } from '#config.ts'
import { openShell, readGuide, type Stub } from '../support/guides.ts'
import { createStorage, project, run, startInProcess } from '../support/process.ts'
import { copyOfOldest } from '../upgrades/release.ts'

/** Variables with which commands use this database and this data folder. */
const whereOf = ({ data, database, env }: { data: string; database: string; env: Record<string, string> }) => ({
  ...env,
  PINFOLD_DATA: data,
  ...(database && { PINFOLD_DATABASE: database }),
})

const afterFlag = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]!

test('each setting in the guides exists', async () => {
  const known = Object.values(settings).map(({ env }) => env)
  const helpers = [
    'PINFOLD_TOKEN',
    'PINFOLD_API',
    'PINFOLD_IDENTITY',
    'PINFOLD_ID_TOKEN',
    'PINFOLD_USER',
    'PINFOLD_PASSWORD',
  ]
  const unknown = globSync('docs/guides/*.md', { cwd: project }).flatMap((page) => {
    const names = readFileSync(join(project, page), 'utf8').match(/\bPINFOLD_[A-Z0-9_]*[A-Z0-9]/g) ?? []
    return names.filter((name) => !known.includes(name) && !helpers.includes(name)).map((name) => `${page}: ${name}`)
  })
  assert.deepEqual(unknown, [])
})

test('the guide on production works as written', async () => {
  const { sh } = readGuide('run-in-production')
  const [install, several, check] = sh
  await using storage = await createStorage()
  await using server = await startInProcess(storage)
  const files = new Map<string, string>()
  const sudo: Stub = ([program, ...args]) => {
    if (program === 'cp') {
      const [from, to] = args as [string, string]
      const target = to.endsWith('/') ? `${to}${from.split('/').at(-1)}` : to
      files.set(target, readFileSync(join(project, from), 'utf8'))
      return {}
    }
    assert.deepEqual([program, ...args], ['systemctl', 'enable', '--now', 'pinfold'])
    const unit = files.get('/etc/systemd/system/pinfold.service')!
    const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)![1]!
    const config = readConfig(parseEnv(files.get(value('EnvironmentFile'))!))
    assert.equal(config.data, `/var/lib/${value('StateDirectory')}`)
    assert.deepEqual(config.listen, { host: '127.0.0.1', port: 8080 })
    assert.equal(value('ExecStart'), '/opt/pinfold/bin/pinfold serve')
    assert.ok(existsSync(join(project, 'bin/pinfold')))
    return {}
  }
  let key = ''
  const openssl: Stub = (args) => {
    assert.deepEqual(args, ['rand', '-hex', '32'])
    key = 'ab'.repeat(32)
    return { stdout: `${key}\n` }
  }
  const served: string[] = []
  const pinfold: Stub = async (args, env) => {
    if (args[0] !== 'serve') return run(args, { env })
    const blobs = afterFlag(args, '--blobs')
    const database = afterFlag(args, '--database')
    const config = readConfig({ PINFOLD_DATABASE: database, PINFOLD_BLOBS: blobs, PINFOLD_MASTER_KEY: key })
    served.push(config.database, config.blobs)
    return {}
  }
  await using shell = await openShell(whereOf(storage), { sudo, openssl, pinfold })
  await shell.paste(install!, { '127.0.0.1:8080': new URL(server.url).host })
  assert.equal(files.size, 2)
  await shell.paste(several!)
  assert.deepEqual(served, ['postgres://pinfold@db.example.com/pinfold', 's3://registry-blobs?region=eu-central-1'])
  const { stdout } = await shell.paste(check!, { 'https://registry.example.com': server.url })
  assert.match(stdout, /^ok/)
  assert.match(stdout, /examined, all right/)
})

test('the guide on upgrades works as written, on the data of the oldest version', async () => {
  const { text, sh } = readGuide('upgrade')
  const [backup, migrate] = sh
  await using storage = await copyOfOldest()
  await using shell = await openShell(whereOf(storage))
  const backups = join(shell.home.home, 'backups')
  const early = await shell.paste(`${backup!.trim()} 2>&1 || true`, { '/backups/pinfold': backups })
  assert.match(early.stdout, /make a backup with that version, then run pinfold migrate/)
  await shell.paste(migrate!)
  const unused = await shell.paste(`${backup!.trim()} 2>&1 || true`, { '/backups/pinfold': backups })
  assert.match(unused.stdout, /has no blob store yet; start the server/)
  await using _server = await startInProcess(storage)
  await shell.paste(backup!, { '/backups/pinfold': backups })
  assert.ok(readdirSync(backups).includes('blobs'))

  assert.match(text, /pinfold migrate --finish/)
  const schema = JSON.parse(readFileSync(join(project, 'examples/chart/values.schema.json'), 'utf8'))
  const [, name, value] = /`--set (\w+)=(\w+)`/.exec(text)!
  assert.ok(schema.properties[name!].enum.includes(value), `${name}=${value}`)
  const templates = globSync('examples/chart/templates/*', { cwd: project }).map((file) => {
    return readFileSync(join(project, file), 'utf8')
  })
  assert.ok(templates.some((template) => /pre-upgrade/.test(template) && /migrate/.test(template)))
})

test('the backup in the guide has the parts that its table shows', async (t: TestContext) => {
  const guide = readGuide('back-up-and-restore')
  const [backup, dump, replicate] = guide.sh
  await using storage = await createStorage()
  await using _server = await startInProcess(storage)
  const pgDump: Stub = (args) => {
    const file = args.find((word) => word.startsWith('--file='))!.slice('--file='.length)
    writeFileSync(file, 'a dump')
    assert.deepEqual([args[0], args.at(-1)], ['--format=custom', storage.database || 'postgres://127.0.0.1/pinfold'])
    return {}
  }
  const litestream: Stub = () => ({})
  await using shell = await openShell(whereOf(storage), { pg_dump: pgDump, litestream })
  const backups = join(shell.home.home, 'backups')
  if (storage.database) {
    await shell.paste(`mkdir ${backups}\n${dump!}`, { '/backups/pinfold': backups })
    assert.ok(readdirSync(backups).includes('pinfold.dump') && readdirSync(backups).includes('blobs'))
    return t.diagnostic('copies of an embedded database are left out')
  }
  await shell.paste(backup!, { '/var/lib/pinfold': storage.data, '/backups/pinfold': backups })
  const example = /^\| `(\S+)\/pinfold\.db` \|/m.exec(guide.text)![1]!
  const shape = new RegExp(`^${example.replaceAll(/\d/g, '\\d').replaceAll('.', '\\.')}$`)
  const copies = readdirSync(backups).filter((name) => shape.test(name))
  assert.equal(copies.length, 1)
  assert.deepEqual(readdirSync(join(backups, copies[0]!)).sort(), ['backup.json', 'pinfold.db'])
  assert.ok(existsSync(join(backups, 'blobs')))
  const described = JSON.parse(readFileSync(join(backups, copies[0]!, 'backup.json'), 'utf8'))
  assert.match(described.masterKey, /^[0-9a-f]{16}$/)

  await shell.paste(replicate!, { '/var/lib/pinfold': storage.data, TIME: '2026-11-30T12:00:00Z' })
  const [copying, restoring] = shell.calls()
  assert.deepEqual(copying!.args, ['replicate', join(storage.data, 'pinfold.db'), 's3://backups/pinfold'])
  assert.ok(existsSync(copying!.args[1]!))
  assert.deepEqual(restoring!.args.at(-1), 's3://backups/pinfold')
})
