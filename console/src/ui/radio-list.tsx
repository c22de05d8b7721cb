// List of radio buttons, each with a description. For roles and modes.
type Option = { value: string; label: string; description: string }
type Props = {
  label: string
  name: string
  options: readonly Option[]
  value: string
  onChoose: (value: string) => void
}

export function RadioList({ label, name, options, value, onChoose }: Props) {
  return (
    <fieldset>
      <legend>{label}</legend>
      <div class="radio-list">
        {options.map((one) => (
          <label key={one.value}>
            <input
              type="radio"
              name={name}
              value={one.value}
              checked={one.value === value}
              onChange={() => onChoose(one.value)}
            />
            {one.label}
            <span class="hint">{one.description}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
