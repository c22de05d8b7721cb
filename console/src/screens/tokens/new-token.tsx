// Dialog that creates a push token or a pull token, and shows its password once.
import { useState } from 'preact/hooks'
import { can, me } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { canCreateKeys, createPullToken } from '../../data/pull-tokens.ts'
import type { Group, PushToken } from '../../data/types.ts'
import { Dialog, Form } from '../../ui/form.tsx'
import { Icon } from '../../ui/icon.tsx'
import { useLoad } from '../../ui/load.ts'
import { RadioList } from '../../ui/radio-list.tsx'
import { Note, Shown } from '../../ui/states.tsx'
import { Code } from '../../ui/text.tsx'
import { tokenWords } from '../../words/tokens.ts'
import { words } from '../../words.ts'
import { readScopes, scopeField } from '../members/role-choice.tsx'

type Props = { kind: 'push' | 'pull'; group: Group; onMade: () => void }
type Made = { user: string; password: string }

const titles = { push: tokenWords.newPushToken, pull: tokenWords.newPullToken }

export function NewTokenButton(props: Props) {
  const [isOpen, setOpen] = useState(false)
  return (
    <p>
      <button type="button" onClick={() => setOpen(true)}>
        <Icon name="add" />
        {titles[props.kind]}
      </button>
      {isOpen && <NewTokenDialog {...props} onClose={() => setOpen(false)} />}
    </p>
  )
}

const daySeconds = 86_400

function NewTokenDialog({ kind, group, onMade, onClose }: Props & { onClose: () => void }) {
  const [made, setMade] = useState<Made>()
  const [access, setAccess] = useState('pull')
  const read = useLoad(`scopes ${group.uid}`, (signal) => readScopes(group, signal))
  const create = async ({ name = '', scope, days }: Record<string, string>) => {
    const place = scope || group.uid
    if (kind === 'pull') setMade(await createPullToken(place, { name, days: Number(days), host: me.host }))
    else {
      const body = { name, push: access === 'push', ttl: `${Number(days) * daySeconds}s` }
      const answer = await ask<{ pushToken: PushToken; secret: string }>('POST', `/control/v1/pushTokens/${place}`, {
        body,
      })
      setMade({ user: answer.pushToken.userName, password: answer.secret })
    }
    onMade()
  }
  return (
    <Dialog title={titles[kind]} onClose={onClose}>
      {made ? (
        <Password {...made} />
      ) : kind === 'pull' && !canCreateKeys() ? (
        <Note kind="warn">{tokenWords.insecurePage}</Note>
      ) : (
        <Shown of={read}>
          {(scopes) => (
            <Form
              submit={tokenWords.createToken}
              onSubmit={create}
              fields={[
                { name: 'name', label: tokenWords.tokenName, hint: tokenWords.tokenNameHint },
                ...scopeField({ scopes }),
                {
                  name: 'days',
                  label: tokenWords.tokenExpires,
                  type: 'select',
                  value: '30',
                  options: Object.entries(tokenWords.tokenDays).map(([value, label]) => ({ value, label })),
                },
              ]}
            >
              {kind === 'push' && can('tag.create', group.uid) && (
                <RadioList
                  label={tokenWords.tokenPermissions}
                  name="access"
                  value={access}
                  onChoose={setAccess}
                  options={[
                    { value: 'pull', label: tokenWords.canPull, description: tokenWords.canPullText },
                    { value: 'push', label: tokenWords.canPush, description: tokenWords.canPushText },
                  ]}
                />
              )}
            </Form>
          )}
        </Shown>
      )}
    </Dialog>
  )
}

function Password({ user, password }: Made) {
  return (
    <>
      <Note kind="good">{tokenWords.tokenOnce}</Note>
      <p>{tokenWords.tokenPassword}</p>
      <Code text={password} label={tokenWords.copyPassword} />
      <p>{tokenWords.tokenLogin}</p>
      <Code text={`docker login --username ${user} ${me.host}`} label={words.copyCommand} />
    </>
  )
}
