// Dialog that lists the keyboard shortcuts. The user can turn them off there.
import { Dialog } from '../ui/form.tsx'
import { words } from '../words.ts'
import { hasKeys } from './settings.ts'

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={words.helpTitle} onClose={onClose}>
      <p>{words.helpText}</p>
      <dl class="keys">
        {Object.entries(words.keys).map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p>
        <label>
          <input
            type="checkbox"
            checked={hasKeys.value}
            onChange={(event) => (hasKeys.value = (event.target as HTMLInputElement).checked)}
          />{' '}
          {words.keysOn}
        </label>
      </p>
    </Dialog>
  )
}
