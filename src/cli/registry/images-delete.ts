import { plain, size } from '#lib/terminal/plain-text.ts'
import { apiReader, callerOptions } from '../framework/api-pages.ts'
import type { ApiReader } from '../framework/api-reader.ts'
import { type CliError, failure, usageError } from '../framework/cli-error.ts'
import type { Command, Terminal } from '../framework/command.ts'
import { allowMissingOption, unlessMissing } from '../framework/verbs.ts'
import { everyTag, imageNamed } from './image-names.ts'

export const imagesDelete: Command = {
  details: `Shows the tags and the size of the repository, and asks for confirmation. Without a terminal, --yes is required unless the
repository is empty. The history of its tags remains; pinfold tags history shows it.
To delete one tag: pinfold tags delete acme/team/app:1.0.`,
  arguments: [{ name: '<image>', summary: 'Repository: ORG/NAME, ORG/FOLDER/NAME or a uid' }],
  options: [
    { flags: '-y, --yes', summary: 'Delete the repository without asking for confirmation' },
    allowMissingOption,
    ...callerOptions,
  ],
  async run(terminal, options) {
    return unlessMissing(terminal, options, async () => {
      const api = await apiReader(terminal, options)
      const { path, tag, repo } = await imageNamed(api, options.image)
      if (tag !== undefined) throw deletesRepository(path, tag)
      const held = options.yes === true ? '' : await contentText(api, repo)
      if (held) await confirm(terminal, path, held)
      await api.call('DELETE', `/registry/v2/repos/${repo}`)
      terminal.print(`deleted ${path}`)
    })
  },
}

function deletesRepository(path: string, tag: string): CliError {
  const ofTag = `to delete one tag: pinfold tags delete ${path}:${tag}`
  const ofRepo = `to delete the repository: pinfold repos delete ${path}`
  return usageError(`nothing was deleted, because this command deletes whole repositories\n${ofTag}\n${ofRepo}`)
}

const namedTags = 10

/** Text with the tags and the size of a repository. Empty for an empty repository. */
async function contentText(api: ApiReader, repo: string): Promise<string> {
  const ofRepo = { 'uidp.children_of': repo, order_by: 'name', page_size: String(namedTags) }
  const listed = await api.call('GET', `/registry/v2/tags?${new URLSearchParams({ ...ofRepo, ...everyTag })}`)
  const usage = await api.call('GET', `/registry/v2/repos/${repo}/usage`)
  const names = ((listed.tags ?? []) as { name: string }[]).map(({ name }) => plain(name))
  const [tags, manifests, bytes] = [listed.totalCount, usage.manifests, usage.bytes].map((count) => Number(count ?? 0))
  if (tags === 0 && bytes === 0) return ''
  const more = tags! > names.length ? ` and ${tags! - names.length} more` : ''
  const about = names.length > 0 ? ` (${names.join(', ')}${more})` : ''
  return `${counted(tags!, 'tag')}${about} and ${size(bytes)} in ${counted(manifests!, 'manifest')}`
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

async function confirm(terminal: Terminal, path: string, held: string): Promise<void> {
  if (!terminal.ask) {
    throw usageError(
      `nothing was deleted: ${path} has ${held}, and without a terminal no confirmation is possible; give --yes to delete it`,
    )
  }
  terminal.say(`${path} has ${held}. Pulls will fail after the deletion; the history of the tags remains.`)
  const answer = await terminal.ask(`Delete it? [y/N] `)
  if (!/^y(?:es)?$/i.test(answer.trim())) throw failure('nothing was deleted')
}
