//! Dates and times of ISO 8601 as numbers, and back as text.

/// The whole days since 1970-01-01 of a date such as `2024-02-29`, in the Gregorian calendar.
///
/// Source: H. Hinnant, *chrono-compatible low-level date algorithms* (2013): the year begins in March, so that
/// the leap day is its last.
pub(super) fn days(field: &str) -> Option<i64> {
    let bytes = field.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let [year, month, day] = [0..4, 5..7, 8..10].map(|part| digits(bytes.get(part)?));
    let (year, month, day) = (year?, month?, day?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * month + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// The seconds since 1970-01-01T00:00Z of a date with or without a time, such as `2024-02-29T12:30:00+02:00`. A
/// time without an offset is one of UTC.
pub(super) fn seconds(field: &str) -> Option<f64> {
    let day = days(field.get(..10)?)? as f64 * 86_400.0;
    let Some(rest) = field.get(10..).filter(|rest| !rest.is_empty()) else { return Some(day) };
    let time = rest.strip_prefix(['T', 't', ' '])?;
    let (time, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => (&time[..at], minutes(&time[at..])?),
        None => (time, 0),
    };
    let (hour, rest) = time.split_at_checked(2)?;
    let (minute, second) = rest.strip_prefix(':')?.split_at_checked(2)?;
    let second = match second {
        "" => "0",
        second => second.strip_prefix(':')?,
    };
    let (whole, fraction) = second.split_once('.').unwrap_or((second, "0"));
    let [hour, minute, whole_second] = [hour, minute, whole].map(|part| digits(part.as_bytes()));
    let (hour, minute, _) = (hour?, minute?, whole_second?);
    digits(fraction.as_bytes())?;
    let second: f64 = second.parse().ok()?;
    if hour > 23 || minute > 59 || second >= 60.0 || whole.len() > 2 {
        return None;
    }
    Some(day + ((hour * 60 + minute - offset) * 60) as f64 + second)
}

/// The dates that a field in another format, such as `01/02/2024`, can be, in ISO 8601; none if that is not
/// known, and `None` if the field does not look like a date.
pub(super) fn other_format(field: &str) -> Option<Vec<String>> {
    let field = field.split([' ', 'T']).next()?;
    let separator = field.chars().find(|c| ['/', '.', '-'].contains(c))?;
    let parts: Vec<&str> = field.split(separator).collect();
    let [one, two, three] = parts[..] else { return None };
    parts.iter().all(|part| digits(part.as_bytes()).is_some()).then_some(())?;
    let dates: &[[&str; 3]] = match [one, two, three].map(str::len) {
        [4, 1..=2, 1..=2] => &[[one, two, three]],
        [1..=2, 1..=2, 4] => &[[three, two, one], [three, one, two]],
        [1..=2, 1..=2, 1..=2] if separator == '/' => return Some(Vec::new()),
        _ => return None,
    };
    let mut found: Vec<String> = Vec::new();
    for [year, month, day] in dates {
        let date = format!("{year}-{month:0>2}-{day:0>2}");
        if days(&date).is_some() && !found.contains(&date) {
            found.push(date);
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The minutes of an offset: `Z`, `+02:00`, `+0200` or `+02`.
fn minutes(offset: &str) -> Option<i64> {
    if offset.eq_ignore_ascii_case("Z") {
        return Some(0);
    }
    let (sign, rest) = offset.split_at_checked(1)?;
    let (hours, rest) = rest.split_at_checked(2)?;
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    let rest = if rest.is_empty() { "00" } else { rest };
    let (hours, minutes) = (digits(hours.as_bytes())?, digits(rest.as_bytes())?);
    let fits = hours < 24 && minutes < 60 && rest.len() == 2;
    fits.then_some(if sign == "-" { -1 } else { 1 } * (hours * 60 + minutes))
}

/// A number of digits alone.
fn digits(bytes: &[u8]) -> Option<i64> {
    let is_number = !bytes.is_empty() && bytes.len() <= 18 && bytes.iter().all(u8::is_ascii_digit);
    is_number.then(|| bytes.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

/// The date of a number of days since 1970-01-01, as text.
pub(super) fn date(days: i64) -> String {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The time of a number of seconds since 1970-01-01T00:00Z, as text.
pub(super) fn time(seconds: f64) -> String {
    let whole = seconds.floor();
    let (day, second) = ((whole / 86_400.0).floor(), whole.rem_euclid(86_400.0) as i64);
    let text =
        format!("{} {:02}:{:02}:{:02}", date(day as i64), second / 3600, second / 60 % 60, second % 60);
    match seconds - whole {
        0.0 => text,
        part => format!("{text}{}", format!("{part:.3}").trim_start_matches('0')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_is_the_next_one() {
        let mut text = String::from("0000-12-31");
        for day in days("0001-01-01").unwrap()..=days("9999-12-31").unwrap() {
            let next = date(day);
            assert!(next > text, "{next} after {text}");
            assert_eq!(days(&next), Some(day));
            text = next;
        }
        assert_eq!(
            [days("1970-01-01"), days("2000-02-29"), days("1969-12-31")],
            [Some(0), Some(11_016), Some(-1)]
        );
        for wrong in [
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-04-31",
            "2024-1-01",
            "+024-01-01",
            "2024/01/01",
            "20240101",
            "",
            "2024-01-01T00:00",
            "２024-01-1",
        ] {
            assert_eq!(days(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_have_offsets() {
        let day = 86_400.0;
        for (text, want) in [
            ("1970-01-02", day),
            ("1970-01-01T00:00", 0.0),
            ("1970-01-01 01:02:03.5", 3723.5),
            ("1970-01-01T01:00:00Z", 3600.0),
            ("1970-01-01T00:00+01:30", -5400.0),
            ("1970-01-02T00:00:00-0100", day + 3600.0),
            ("1970-01-01T12+02", f64::NAN),
            ("1970-01-01T24:00", f64::NAN),
            ("1970-01-01T00:60", f64::NAN),
            ("1970-01-01T00:00:60", f64::NAN),
            ("1970-01-01T00:00:", f64::NAN),
            ("1970-01-01T", f64::NAN),
            ("1970-01-01T00:00:00+1", f64::NAN),
            ("1970-01-01T00:00:1e1", f64::NAN),
            ("1970-01-01x00:00", f64::NAN),
        ] {
            assert_eq!(seconds(text).unwrap_or(f64::NAN).to_bits(), want.to_bits(), "{text}");
        }
        assert_eq!([time(-1.0), time(3723.5)], ["1969-12-31 23:59:59", "1970-01-01 01:02:03.500"]);
    }
}
