//! The names of segments: `$Number%05d$` and its like (ISO/IEC 23009-1, 5.3.9.4.4).

/// The values that may stand in a segment's name.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    pub representation_id: &'a str,
    pub bandwidth: u64,
    pub number: u64,
    pub time: u64,
}

/// Writes a segment's name. Errors name the identifier that is not known or not closed.
pub fn expand(pattern: &str, values: Values<'_>) -> Result<String, String> {
    let mut name = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    while let Some(at) = rest.find('$') {
        name.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let end =
            after.find('$').ok_or_else(|| format!("\"{pattern}\" has a $ without its partner ($$ writes one)"))?;
        let (identifier, width) = match after[..end].split_once('%') {
            Some((identifier, format)) => (identifier, width(pattern, format)?),
            None => (&after[..end], 1),
        };
        match identifier {
            "" => name.push('$'),
            "RepresentationID" => name.push_str(values.representation_id),
            "Number" => name.push_str(&format!("{:0width$}", values.number)),
            "Bandwidth" => name.push_str(&format!("{:0width$}", values.bandwidth)),
            "Time" => name.push_str(&format!("{:0width$}", values.time)),
            other => {
                return Err(format!(
                    "\"{pattern}\" asks for ${other}$; known are $RepresentationID$, $Number$, $Time$, $Bandwidth$, $$"
                ))
            }
        }
        rest = &after[end + 1..];
    }
    name.push_str(rest);
    Ok(name)
}

/// Reads the `0[width]d` of `%0[width]d`.
fn width(pattern: &str, format: &str) -> Result<usize, String> {
    format
        .strip_suffix('d')
        .and_then(|digits| digits.parse::<usize>().ok())
        .filter(|width| *width <= 32)
        .ok_or_else(|| format!("\"{pattern}\" has the format %{format}; allowed is %0Nd, N from 1 to 32"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: Values<'static> = Values { representation_id: "v480", bandwidth: 2_600_000, number: 7, time: 90_000 };

    #[test]
    fn every_identifier_is_filled_in() {
        let name = expand("$RepresentationID$/$Bandwidth$/$Number%05d$-$Time$.m4s", VALUES);
        assert_eq!(name.unwrap(), "v480/2600000/00007-90000.m4s");
    }

    #[test]
    fn two_dollars_write_one() {
        assert_eq!(expand("a$$b", VALUES).unwrap(), "a$b");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(expand("$Nummer$", VALUES).unwrap_err().contains("$Nummer$"));
        assert!(expand("x$Number", VALUES).unwrap_err().contains("without its partner"));
        assert!(expand("$Number%5x$", VALUES).unwrap_err().contains("%5x"));
    }
}
