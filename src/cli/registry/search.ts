// Command that searches everything by a part of its name.
import { apiCommand } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import { outputOption } from '../framework/command.ts'
import { limitOf, limitOption } from '../framework/list-command.ts'
import { groupOf } from '../framework/names.ts'

type Result = { kind: string; match: string; name: string; path: string; detail: string; updateTime?: string }

const kinds = ['organization', 'folder', 'repository', 'tag', 'digest', 'package', 'vulnerability', 'member']

const usualLimit = 50

export const search = apiCommand({
  details: `Finds organizations, folders, repositories, tags, digests, packages, vulnerabilities and members. The best matches come first. A
digest needs at least six digits, and a vulnerability the start of its id or number. You see only what you can list.`,
  arguments: [{ name: '<text>', summary: 'Part of a name; acme/pay: pay in acme; app:1.: tags of app' }],
  options: [
    { flags: '--kind <kinds>', summary: `Only these kinds, with commas between them: ${kinds.join(', ')}` },
    { flags: '--in <group>', summary: 'Only in this organization or folder: ORG, ORG/FOLDER or a uid' },
    { ...limitOption, summary: `Maximum number of results; default: ${usualLimit}` },
    outputOption,
  ],
  check(options) {
    limitOf(options, usualLimit)
    const { kind } = options
    const unknown =
      kind === undefined
        ? []
        : String(kind)
            .split(',')
            .filter((one) => !kinds.includes(one))
    if (unknown.length > 0) throw usageError(`--kind must be some of ${kinds.join(', ')}, with commas between them`)
  },
  async run(api, options) {
    const query = {
      query: String(options.text),
      kinds: options.kind as string | undefined,
      scope_uid: options.in === undefined ? undefined : await groupOf(api, String(options.in)),
    }
    const { items, more } = await api.list<Result>(
      '/registry/v2/search',
      'results',
      query,
      limitOf(options, usualLimit),
    )
    const rows = items.map(({ kind, name, path, detail }) => {
      return [kind, kind === 'member' || path === '' ? name : path, detail]
    })
    const notes = (say: (line: string) => void) => {
      if (items.length === 0) say('pinfold: no name that you can list contains this text')
    }
    return { json: { items }, head: ['KIND', 'NAME', 'DETAIL'], rows, more, notes }
  },
})
