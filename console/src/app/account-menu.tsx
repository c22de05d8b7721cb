// Menu of the account: theme, time zone, keyboard shortcuts, sessions and sign-out.
import { useEffect, useRef, useState } from 'preact/hooks'
import { Avatar } from '../ui/avatar.tsx'
import { Icon, type IconName } from '../ui/icon.tsx'
import { Menu, MenuItem } from '../ui/menu.tsx'
import { words } from '../words.ts'
import { paths } from './paths.ts'
import { me } from './session.ts'
import { isUtc, type Theme, theme } from './settings.ts'

const themes: [Theme, IconName][] = [
  ['system', 'system'],
  ['light', 'light'],
  ['dark', 'dark'],
]

export function AccountMenu({ showHelp }: { showHelp: () => void }) {
  const signOut = useRef<HTMLFormElement>(null)
  return (
    <>
      <button type="button" class="account" popovertarget="account-menu" title={words.accountMenu}>
        <Avatar name={me.name} isPerson />
        <span class="unseen">{words.accountMenu}: </span>
        <bdi>{me.name}</bdi>
        {me.isOperator && <MinutesLeft />}
        <Icon name="switch" />
      </button>
      <Menu id="account-menu" label={words.accountMenu}>
        <ul>
          <MenuItem href={paths.account} icon="user">
            {words.accountAndSessions}
          </MenuItem>
          <MenuItem icon="keys" onClick={showHelp}>
            {words.keyboardShortcuts}
          </MenuItem>
          <MenuItem href="/docs" icon="reference">
            {words.reference}
          </MenuItem>
        </ul>
        <hr />
        <h2>{words.theme}</h2>
        <ul>
          {themes.map(([name, icon]) => (
            <MenuItem key={name} icon={icon} isNow={theme.value === name} onClick={() => (theme.value = name)}>
              {words.themes[name]}
            </MenuItem>
          ))}
        </ul>
        <hr />
        <h2>{words.times}</h2>
        <ul>
          <MenuItem icon="time" isNow={isUtc.value} onClick={() => (isUtc.value = true)}>
            {words.timeZones.utc}
          </MenuItem>
          <MenuItem icon="time" isNow={!isUtc.value} onClick={() => (isUtc.value = false)}>
            {words.timeZones.local}
          </MenuItem>
        </ul>
        <hr />
        <ul>
          <MenuItem href={paths.advisories} icon="advisories">
            {words.advisories}
          </MenuItem>
          <MenuItem href={paths.libraries} icon="libraries">
            {words.libraries}
          </MenuItem>
        </ul>
        <hr />
        <ul>
          <MenuItem icon="signOut" onClick={() => signOut.current?.submit()}>
            {words.signOut}
          </MenuItem>
        </ul>
        <p class="hint">{words.versionOf(me.version)}</p>
        <form ref={signOut} method="post" action="/ui/signout" hidden />
      </Menu>
    </>
  )
}

const minuteMs = 60_000

/** Time until the session of the operator ends. */
function MinutesLeft() {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), minuteMs / 2)
    return () => clearInterval(timer)
  }, [])
  const left = Math.max(0, Math.round((me.sessionEnd - now) / minuteMs))
  return <span class="badge bad">{words.minutesLeft(left)}</span>
}
