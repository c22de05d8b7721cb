import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tokenizer } from 'acorn'
import { problemOf } from '../support/backtracking.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/**
 * Files whose expressions may match text of strangers. Commands and settings are left out: they match only text of the user who
 * starts the program.
 */
const files = globSync('src/**/*.ts', { cwd: root, exclude: ['src/cli/**', 'src/config/**'] })
  .filter((file) => !file.endsWith('.test.ts'))
  .sort()

type Pattern = { source: string; flags: string }

const codeOf = (file: string): string => stripTypeScriptTypes(readFileSync(join(root, file), 'utf8'))

function literalsIn(code: string): Pattern[] {
  const tokens = [...tokenizer(code, { ecmaVersion: 'latest', sourceType: 'module' })]
  return tokens.flatMap((token) => {
    if (token.type.label !== 'regexp') return []
    const { pattern, flags } = (token as unknown as { value: { pattern: string; flags: string } }).value
    return [{ source: pattern, flags }]
  })
}

test('every regular expression takes time linear in the length of the text', () => {
  const all = files.flatMap((file) => literalsIn(codeOf(file)).map((pattern) => ({ file, pattern })))
  assert.ok(all.length > 300)
  const slow = all.flatMap(({ file, pattern }) => {
    const problem = problemOf(pattern)
    return problem ? [`${file}: /${pattern.source}/${pattern.flags}: ${problem}`] : []
  })
  assert.deepEqual(slow, [])
})

const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*'
const name = '[A-Za-z$][A-Za-z0-9_$-]*'
const separator = '[-_.]?'

/** Expressions that are composed at run time, with an example for each variable part. */
const built: Record<string, readonly Pattern[]> = {
  'src/api/naming/members.ts': [{ source: '(?<=^|\\.)acme(?=\\.|$)', flags: '' }],
  'src/clouds/amazon.ts': [{ source: '<Account>([^<]*)</Account>', flags: '' }],
  'src/contents/databases/os-release.ts': [{ source: '^VERSION_ID=(.*)$', flags: 'gm' }],
  'src/contents/languages/languages.ts': [
    {
      source:
        '^[ \\t]*\\w{1,20}\\.version[ \\t]*=[ \\t]*(?:Gem::Version\\.new[ \\t(]{0,5})?(?:%q)?["\'({]([^"\'(){}\\n]{1,512})["\')}]',
      flags: 'm',
    },
  ],
  'src/domains/mirrors/follows/upstreams.model.ts': [
    { source: `^${component}(?:/${component})*$`, flags: '' },
    { source: `^(?:${component}(?:/${component})*)?$`, flags: '' },
  ],
  'src/domains/scanning/scanners/scanners.service.ts': [
    { source: '^(?:Bearer|Basic|X-ScannerAdapter-API-Key:) [\\x21-\\x7e]{1,8192}$', flags: '' },
  ],
  'src/domains/scanning/sources/sync.service.ts': [{ source: '^records\\[(\\d+)\\](?:\\.(.*))?$', flags: '' }],
  'src/lib/crypto/push-secret.ts': [{ source: '^pinfold_pt_[0-9A-Za-z]{36}$', flags: '' }],
  'src/lib/naming/vendor.ts': [
    { source: '^pinfold\\.(?!(?:control|annotations)\\.)', flags: '' },
    { source: '^dev\\.pinfold\\.(?!(?:control|annotations)\\.)', flags: '' },
  ],
  'src/lib/oci-names.ts': [
    { source: `^${component}$`, flags: '' },
    { source: `^${component}(?:/${component})+$`, flags: '' },
  ],
  'src/lib/tlog/proof-text.ts': [{ source: '^c2sp\\.org/tlog-proof@v1\n', flags: 'm' }],
  'src/lib/tlog/tag-entry.ts': [
    {
      source:
        '^header\\n([0-9a-f]{64})\\n(0|[1-9]\\d{0,14})\\n(-|[0-9a-f]{64})\\n' +
        '(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)\\n(first|other)\\n([0-9a-f]{64})\\n$',
      flags: '',
    },
  ],
  'src/lib/tlog/tag-proof.ts': [{ source: '/ledger/[0-9a-f]{40}(?:/[0-9]+-[0-9a-f]{8})?$', flags: '' }],
  'src/scim/patch.ts': [
    { source: `^(${name})(?:\\.(${name}))?$`, flags: '' },
    {
      source: `^(${name})\\[\\s*(type|display)\\s+eq\\s+("(?:[^"\\\\]|\\\\.)*"|true|false)\\s*\\](?:\\.(${name}))?$`,
      flags: 'i',
    },
  ],
  'src/versions/pep440.ts': [
    {
      source:
        '^v?(?:(?<epoch>\\d+)!)?(?<release>\\d+(?:\\.\\d+)*)' +
        `(?:${separator}(?<pre>alpha|a|beta|b|preview|pre|c|rc)${separator}(?<preNumber>\\d*))?` +
        `(?<post>-(?<postBare>\\d+)|${separator}(?:post|rev|r)${separator}(?<postNumber>\\d*))?` +
        `(?<dev>${separator}dev${separator}(?<devNumber>\\d*))?` +
        '(?:\\+(?<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?$',
      flags: '',
    },
  ],
}

test('regular expressions that are composed at run time take linear time too', () => {
  const made = files.flatMap((file) => {
    const count = codeOf(file).match(/\bRegExp\(/g)?.length ?? 0
    return count === 0 ? [] : [[file, count] as const]
  })
  const listed = Object.entries(built).map(([file, patterns]) => [file, patterns.length] as const)
  assert.deepEqual(made, listed)
  const slow = Object.values(built)
    .flat()
    .flatMap((pattern) => (problemOf(pattern) ? [`${pattern.source}: ${problemOf(pattern)}`] : []))
  assert.deepEqual(slow, [])
})

test('finds an expression that can take more than linear time', () => {
  const slow = [
    ...[/\s+$/, /\d*$/, /x*y/, /(?:\.0+)*$/, /\/.*$/, /^(.+?)-(\d[\w.+-]*)$/, /^a.*b.*c/, /^(?:a+)+$/, /^(?:a|a)*$/],
    ...[/^(?:a*b?)*$/, /^(?:\w|\d)+$/, /^\s*(?:x\s+)?([^\]]+?)\s*\]/, /\b(?:to version|[Uu]pdate to) (\S.*)$/],
    ...[/-?\d+(?:\.\d+)*x/g, /(a*)\1/, /a(?=.*b)/, /^(?:a(?=.*b))*$/, /^(?:ab)*(?:ab)*$/, /a{2,}b{200}a*$/],
  ]
  assert.deepEqual(
    slow.filter((one) => problemOf(one) === undefined),
    [],
  )
  const quick = [
    ...[/^\s+/, /\s+/g, /,.*/s, /^a.*b/, /^(?:a|b)*$/, /^[a-z]+(?:-[a-z]+)*$/, /\n$/, /(?:^|\/)[^/]+\.gemspec$/],
    ...[
      /^(?=.*x)[a-z]+$/,
      /-?\d+(?:\.\d+)*/g,
      /\b(?:to version) (?=\S)/,
      /0{1,9}$/,
      /^a{1,3}b$/,
      /\s*y\s*/y,
      /"([^"]*)" x/g,
    ],
  ]
  assert.deepEqual(
    quick.filter((one) => problemOf(one) !== undefined),
    [],
  )
})
