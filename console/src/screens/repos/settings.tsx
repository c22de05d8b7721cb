// Name and description of a repository, and its deletion.
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { can, isKnown } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { forgetPaths } from '../../data/names.ts'
import type { Repo, RepoUsage, Tag } from '../../data/types.ts'
import { DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown, Waiting } from '../../ui/states.tsx'
import { bytes } from '../../ui/text.tsx'
import { groupWords } from '../../words/groups.ts'
import { repoWords } from '../../words/repos.ts'
import { numbers, words } from '../../words.ts'

type Props = { names: readonly string[]; repo: Repo; onChange: () => void }

export function RepoSettings({ names, repo, onChange }: Props) {
  const [canChange, canDelete] = [can('repo.update', repo.uid), can('repo.delete', repo.uid)]
  if (!isKnown()) return <Waiting />
  if (!canChange && !canDelete) return <Empty>{groupWords.settingsHidden}</Empty>
  const describe = async ({ description }: Record<string, string>) => {
    await ask('PATCH', `/registry/v2/repos/${repo.uid}`, { body: { description } })
    forgetPaths()
    onChange()
  }
  return (
    <>
      {canChange && (
        <Form
          submit={words.save}
          onSubmit={describe}
          fields={[{ name: 'description', label: words.description, value: repo.description, isOptional: true }]}
        />
      )}
      {canDelete && <DeleteRepo names={names} repo={repo} />}
    </>
  )
}

/** Shows the number of tags and manifests before the deletion is confirmed. */
function DeleteRepo({ names, repo }: { names: readonly string[]; repo: Repo }) {
  const lost = useLoad(`lost with ${repo.uid}`, async (signal) => {
    const [usage, tags] = await Promise.all([
      ask<RepoUsage>('GET', `/registry/v2/repos/${repo.uid}/usage`, { signal }),
      readPage<Tag>('/registry/v2/tags', 'tags', {
        ...{ size: 1, signal },
        query: { 'uidp.childrenOf': repo.uid, includeReferrers: true, includeDates: true, includeEpochs: true },
      }),
    ])
    return { manifests: Number(usage.manifests), bytes: Number(usage.bytes), tags: tags.total ?? 0 }
  })
  const path = names.join('/')
  return (
    <>
      <h2>{repoWords.deleteRepo}</h2>
      <Shown of={lost}>
        {({ manifests, tags, bytes: size }) => {
          const text = repoWords.deleteRepoText(numbers(tags), numbers(manifests), bytes(size))
          return (
            <>
              <p>{text}</p>
              <DangerButton
                button={words.delete}
                label={repoWords.deleteRepoOf(path)}
                title={repoWords.deleteRepoOf(path)}
                text={text}
                mustType={names.at(-1)!}
                act={async () => {
                  await ask('DELETE', `/registry/v2/repos/${repo.uid}`)
                  forgetPaths()
                  go(paths.group(names.slice(0, -1)))
                }}
              />
            </>
          )
        }}
      </Shown>
    </>
  )
}
