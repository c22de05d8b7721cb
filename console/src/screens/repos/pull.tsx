// Commands that pull an image of the repository, for a tag that exists.
import { useState } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { me } from '../../app/session.ts'
import { readPage } from '../../data/list.ts'
import type { PushToken, Repo, Tag } from '../../data/types.ts'
import { CodeTabs } from '../../ui/code-tabs.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { pullWords } from '../../words/pull.ts'
import { pullCommands } from './commands.ts'

type Props = { names: readonly string[]; repo: Repo }
const size = 50

export function Pull({ names, repo }: Props) {
  const [chosen, setChosen] = useState<string>()
  const read = useLoad(`pull ${repo.uid}`, async (signal) => {
    const query = { 'uidp.childrenOf': repo.uid, orderBy: 'update_time desc' }
    const [tags, tokens] = await Promise.all([
      readPage<Tag>('/registry/v2/tags', 'tags', { size, query, signal }),
      readPage<PushToken>('/control/v1/pushTokens', 'pushTokens', { size, signal }).catch(() => undefined),
    ])
    const now = new Date().toISOString()
    const token = tokens?.items.find(
      ({ group, repoUids, expireTime }) =>
        expireTime > now && repo.uid.startsWith(`${group}/`) && (repoUids.length === 0 || repoUids.includes(repo.uid)),
    )
    return { tags: tags.items.filter(({ digest }) => digest !== ''), user: token?.userName }
  })
  const path = names.join('/')
  return (
    <Shown of={read}>
      {({ tags, user }) => {
        const tag = tags.find(({ name }) => name === chosen) ?? tags[0]
        if (!tag) return <Empty command={`docker push ${me.host}/${path}:TAG`}>{pullWords.noTagsToPull}</Empty>
        const { name, digest } = tag
        return (
          <>
            <p class="field">
              <label for="pull-tag">{pullWords.pullTag}</label>
              <select
                id="pull-tag"
                value={name}
                onChange={(event) => setChosen((event.target as HTMLSelectElement).value)}
              >
                {tags.map((one) => (
                  <option key={one.uid} value={one.name}>
                    {one.name}
                  </option>
                ))}
              </select>
            </p>
            <p class="dim">
              {user === undefined ? pullWords.pullToken : pullWords.pullLogin(user)}{' '}
              {user === undefined && (
                <a href={paths.group(names.slice(0, -1), 'integrations', 'tokens')}>{pullWords.pullTokens}</a>
              )}
            </p>
            <CodeTabs
              label={pullWords.pullClients}
              clients={pullCommands({ host: me.host, path, tag: name, digest, user: user ?? 'USER' })}
            />
            <p class="dim">{pullWords.pinnedFirst}</p>
          </>
        )
      }}
    </Shown>
  )
}
